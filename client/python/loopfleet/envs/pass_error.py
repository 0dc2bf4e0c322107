"""The failures of jobs that a reset or step of an LLVM environment raises."""

from __future__ import annotations

from .._core import Outcome
from ..errors import LoopfleetError
from ..pass_failures import PASS_FAILURES


class PassError(LoopfleetError, RuntimeError):
    """A job that failed for another reason than its passes, such as a program that cannot be had. ``status`` is the
    failure's code. If no outcome comes, the client's errors are raised: CoordinatorUnavailable, DeadlineExceeded."""

    def __init__(self, outcome: Outcome):
        super().__init__(f"{outcome.status}: {outcome.message}")
        self.status = outcome.status


def refuse_failure(outcome: Outcome) -> None:
    if not outcome.ok:
        raise PassError(outcome)


def refuse_outage(outcome: Outcome) -> None:
    if not outcome.ok and outcome.status not in PASS_FAILURES:
        raise PassError(outcome)
