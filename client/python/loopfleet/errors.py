"""Exceptions. A job's own failure is data (``Outcome.status``), never an exception."""

from __future__ import annotations

import copyreg

from ._core import JobError, set_schedule_error

__all__ = ["LoopfleetError", "CoordinatorUnavailable", "CoordinatorReplaced", "DeadlineExceeded", "Refused", "ClientClosed",
           "JobError", "BenchmarkInitError", "ClusterError", "ScheduleError"]


class LoopfleetError(Exception):
    """Any failure of an operation. ``ticket``: the ticket of the job concerned, if recv() raises it."""

    ticket: int | None = None

    def __reduce__(self) -> tuple:
        # Not by __init__, as exceptions are otherwise: it may take other arguments than ``args``.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__


def of_ticket(ticket: int, error: BaseException) -> LoopfleetError:
    """A copy of ``error`` for one job; the jobs of a batch share one error."""
    kind = type(error) if isinstance(error, LoopfleetError) else LoopfleetError
    named = kind.__new__(kind)
    named.__dict__.update(error.__dict__)
    named.args = (str(error),)
    named.ticket = ticket
    named.__cause__ = error
    return named


def installing(extra: str) -> str:
    """The command that installs an extra; no package index has loopfleet."""
    return f"pip install '.[{extra}]' in loopfleet's repository, or 'FILE.whl[{extra}]' with its wheel"


class CoordinatorUnavailable(LoopfleetError, ConnectionError):
    """The coordinator was silent for longer than the limit."""


class CoordinatorReplaced(LoopfleetError):
    """The coordinator's database was replaced, probably by a restored snapshot: batches submitted
    after the snapshot are gone. So ends every later call of this client; connect a new one."""


class DeadlineExceeded(LoopfleetError, TimeoutError):
    """The caller's ``timeout`` passed. Jobs of evaluate(), evaluate_many() and as_completed() that
    have not run are cancelled; those of submit() and send() continue at the coordinator. If it
    refused the request for now, the text says with what."""


class Refused(LoopfleetError):
    """The coordinator refused the request. ``code`` is a failure code; ``retryable``: it may
    succeed later; ``retry_after_s``: when it is worth trying again, 0 if the coordinator does not say."""

    def __init__(self, code: str, message: str, retryable: bool = False, retry_after_ms: int = 0):
        when = f"; try again in {retry_after_ms / 1000:.2g} s" if retry_after_ms else ""
        super().__init__(f"{code}: {message}{when}")
        self.retry_after_s = retry_after_ms / 1000
        self.code = code
        self.message = message
        self.retryable = retryable


class ClientClosed(LoopfleetError):
    """The client was closed before or during the call."""


class BenchmarkInitError(LoopfleetError, OSError):  # CompilerGym's name
    """Source files do not become a program: the text is the compiler's or the linker's own message, or says what
    to install where there is none."""


class ClusterError(LoopfleetError):
    """A local cluster could not be started."""


class ScheduleError(LoopfleetError, ValueError, RuntimeError):  # loop_tool's errors are RuntimeErrors
    """A tree does not admit a transformation, or no tree can be made. ``code`` is one of the failure codes."""

    code = ""


set_schedule_error(ScheduleError)
