"""What can go wrong besides a job: a job's own failure is data (``Outcome.status``), never an exception."""

from __future__ import annotations

from ._core import JobError

__all__ = ["LoopfleetError", "CoordinatorUnavailable", "DeadlineExceeded", "Refused", "ClientClosed",
           "JobError", "ClusterError"]


class LoopfleetError(Exception):
    """Any failure of an operation. ``ticket``: of which of send()'s jobs, where recv() raises it."""

    ticket: int | None = None


def of_ticket(ticket: int, error: BaseException) -> LoopfleetError:
    """``error`` as that of one job: many of a batch share one."""
    kind = type(error) if isinstance(error, LoopfleetError) else LoopfleetError
    named = kind.__new__(kind)
    named.__dict__.update(error.__dict__)
    named.args = (f"ticket {ticket}: {error}",)
    named.ticket = ticket
    named.__cause__ = error
    return named


class CoordinatorUnavailable(LoopfleetError, ConnectionError):
    """The coordinator was silent for longer than the limit."""


class DeadlineExceeded(LoopfleetError, TimeoutError):
    """The caller's ``timeout`` passed. Jobs of evaluate(), evaluate_many() and as_completed() that had not run are
    cancelled; what submit() and send() started goes on at the coordinator."""


class Refused(LoopfleetError):
    """The coordinator said no. ``code`` is a failure code, ``retryable`` whether later may help."""

    def __init__(self, code: str, message: str, retryable: bool = False):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retryable = retryable


class ClientClosed(LoopfleetError):
    """The client was closed while the call waited."""


class ClusterError(LoopfleetError):
    """A local cluster could not be started."""
