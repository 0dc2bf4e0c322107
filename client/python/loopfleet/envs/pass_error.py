"""The failures of jobs that a step of an LLVM environment raises."""

from __future__ import annotations

from .._core import Outcome
from ..errors import LoopfleetError
from ..pass_failures import PASS_FAILURES


class PassError(RuntimeError):
    """A program that cannot be had, or an outage. ``status`` is the failure's code."""

    def __init__(self, outcome: Outcome):
        super().__init__(f"{outcome.status}: {outcome.message}")
        self.status = outcome.status

    __reduce__ = LoopfleetError.__reduce__  # pickle has no outcome to call __init__ with


def refuse_failure(outcome: Outcome) -> None:
    if not outcome.ok:
        raise PassError(outcome)


def refuse_outage(outcome: Outcome) -> None:
    if not outcome.ok and outcome.status not in PASS_FAILURES:
        raise PassError(outcome)
