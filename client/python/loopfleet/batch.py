"""Batch: submits one batch in bounded messages and fetches its outcomes as they finish. A state
machine that runs in the client's thread."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from . import _core
from ._core import Job, Outcome
from .errors import LoopfleetError, Refused
from .session import Session

_LONG_POLL_MS = 1000
_BLAMED = re.compile(r"job (\d+): (.*)", re.DOTALL)


class Batch:
    def __init__(self, session: Session, clock: Callable[[], float], jobs: list[Job],
                 on_outcomes: Callable[[list[tuple[int, Outcome]]], None],
                 on_end: Callable[[Exception | None], None]):
        self._session = session
        self._clock = clock
        self._jobs = jobs
        self._places = list(range(len(jobs)))  # index of each job in the caller's list
        self._on_outcomes = on_outcomes
        self._on_end = on_end
        self._sent = 0      # jobs accepted by the coordinator
        self._after = 0     # sequence number of the last outcome
        self._submitting = 0  # number of the latest submission
        self._fetching = 0  # number of the latest fetch
        self._cancelled = False
        self._ended = False
        self.id = 0         # 0: not accepted yet

    def start(self) -> None:
        if _core.jobs_beyond(self._jobs, 0):  # depends on the coordinator's version
            asked = self._session.when_welcome(self._clock(), self._submit_what_it_knows, self._end)
            self._submitting = asked or self._submitting
        else:
            self._submit()

    @property
    def is_cancelling(self) -> bool:
        """Whether the coordinator has not confirmed yet that the batch is cancelled."""
        return self._cancelled and not self._ended

    @property
    def last_refusal(self) -> str:
        """What the coordinator refuses for now, and why; "": nothing. From any thread."""
        return self._session.last_refusal(self._submitting) or self._session.last_refusal(self._fetching)

    def cancel(self) -> None:
        """Cancels the jobs that have not run yet; the batch ends once the coordinator has
        confirmed it. A message on its way may still be accepted; its jobs are cancelled then."""
        if self._ended or self._cancelled:
            return
        self._cancelled = True
        withdrawn = self._session.withdraw(self._submitting)
        if self.id:
            self._say_cancelled()
        elif withdrawn:
            self._end(None)

    def _say_cancelled(self) -> None:
        self._session.request(lambda number: _core.encode_cancel(number, self.id), self._clock(),
                              lambda kind, content: self._end(None), self._end)

    def _submit_what_it_knows(self) -> None:
        """Fails the jobs with fields that the coordinator's version lacks: it would pass over the field, and answer
        another question."""
        minor = self._session.minor
        for place in reversed(_core.jobs_beyond(self._jobs, minor)):
            self._fail(place, "UNSUPPORTED", f"the job needs a newer protocol than the coordinator's at {self._session.address}, "
                       f"which speaks 1.{minor}: upgrade it", None)
        if self._jobs and not self._cancelled:
            self._submit()
        else:
            self._end(None)

    def _submit(self) -> None:
        if self._ended:
            return
        request_id = os.urandom(16)
        # Consider at most one message's worth of jobs.
        part = self._jobs[self._sent:self._sent + _core.MAX_JOBS_PER_MESSAGE]
        part = part[:_core.jobs_that_fit(part)]
        more = self._sent + len(part) < len(self._jobs)
        self._submitting = self._session.request(
            lambda number: _core.encode_submit(number, request_id, self.id, part, more), self._clock(),
            lambda kind, content: self._on_submitted(part, more, kind, content), self._end)

    def _on_submitted(self, part: list[Job], more: bool, kind: str, content) -> None:
        if self._cancelled:
            if kind == "accepted" and not self.id:
                self.id = content[0]
                self._say_cancelled()
            elif not self.id:
                self._end(None)
            return
        if kind == "refused":
            self._on_refused(*content)
            return
        if kind != "accepted":
            self._end(LoopfleetError(f"the coordinator answered a submission with '{kind}'"))
            return
        self.id, first, count = content
        if count != len(part) or first != self._sent:
            self._end(LoopfleetError("the coordinator's numbers of a batch's jobs are not ours"))
            return
        self._sent += count
        if more:
            self._submit()
        if not self._fetching:
            self._fetch()

    def _on_refused(self, code: str, message: str, action_index: int | None, retry_after_ms: int,
                    retryable: bool) -> None:
        blamed = _BLAMED.match(message)
        if blamed and not retryable and self._sent + int(blamed[1]) < len(self._jobs):
            # One job is at fault: it gets its failure, and the others run.
            self._fail(self._sent + int(blamed[1]), code, blamed[2], action_index)
            if self._sent < len(self._jobs) or self.id:
                self._submit()
            else:
                self._end(None)
            return
        self._end(Refused(code, message, retryable, retry_after_ms))

    def _fail(self, place: int, code: str, message: str, action_index: int | None) -> None:
        job = self._jobs.pop(place)
        index = self._places.pop(place)
        outcome = _core.failed_outcome(code, message, action_index, index, job.benchmark, job.actions)
        self._on_outcomes([(index, outcome)])

    def _fetch(self) -> None:
        if self._ended:
            return
        self._fetching = self._session.request(
            lambda number: _core.encode_fetch(number, self.id, self._after, _LONG_POLL_MS), self._clock(),
            self._on_page, self._end, expected=_LONG_POLL_MS / 1000)

    def _on_page(self, kind: str, content) -> None:
        if self._ended:
            return
        if kind == "refused":
            self._end(Refused(content[0], content[1], content[4], content[3]))
            return
        if kind != "outcomes":
            self._end(LoopfleetError(f"the coordinator answered a fetch with '{kind}'"))
            return
        info, outcomes = content
        if outcomes:
            if outcomes[0].sequence != self._after + 1:
                self._end(LoopfleetError(f"outcomes of batch {self.id} came with a gap"))
                return
            self._after = outcomes[-1].sequence
            self._on_outcomes([(self._places[outcome.index], outcome) for outcome in outcomes])
        if info["state"] != "open" and info["finished"] == info["job_count"] and self._after >= info["finished"]:
            self._end(None)
        else:
            self._fetch()

    def _end(self, error: Exception | None) -> None:
        if not self._ended:
            self._ended = True
            self._on_end(error)
