"""The failures of jobs that a step of an LLVM environment raises."""

from __future__ import annotations

from .._core import Outcome

# What a pass did wrong. Any other failure is the fleet's, or the request's, and raises PassError.
_OF_THE_PASS = ("COMPILE_ERROR", "COMPILE_TIMEOUT", "COMPILE_OOM", "SANDBOX_VIOLATION")


class PassError(RuntimeError):
    """A program that cannot be had, or an outage. ``status`` is the failure's code."""

    def __init__(self, outcome: Outcome):
        super().__init__(f"{outcome.status}: {outcome.message}")
        self.status = outcome.status


def refuse_failure(outcome: Outcome) -> None:
    if not outcome.ok:
        raise PassError(outcome)


def refuse_outage(outcome: Outcome) -> None:
    if not outcome.ok and outcome.status not in _OF_THE_PASS:
        raise PassError(outcome)
