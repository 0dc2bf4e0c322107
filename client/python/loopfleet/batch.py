"""One batch on its way: submitted in bounded messages, its outcomes fetched as they finish. A state
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
_PASSING = ("BUSY", "QUOTA_EXCEEDED", "STORAGE_FULL", "SHUTTING_DOWN")  # it takes them later


class Batch:
    def __init__(self, session: Session, clock: Callable[[], float], call_later: Callable[[float, Callable], None],
                 jobs: list[Job], on_outcomes: Callable[[list[tuple[int, Outcome]]], None],
                 on_end: Callable[[Exception | None], None], busy_limit: float):
        self._session = session
        self._clock = clock
        self._call_later = call_later
        self._jobs = jobs
        self._places = list(range(len(jobs)))  # of jobs, in what the caller gave
        self._on_outcomes = on_outcomes
        self._on_end = on_end
        self._busy_until = clock() + busy_limit
        self._sent = 0      # jobs that the coordinator has accepted
        self._after = 0     # sequence number of the last outcome
        self._fetching = False
        self._ended = False
        self.id = 0         # 0: not accepted yet

    def start(self) -> None:
        self._submit(os.urandom(16))

    def cancel(self) -> None:
        """Jobs that have not run yet will not."""
        if self.id and not self._ended:
            self._session.request(lambda number: _core.encode_cancel(number, self.id), self._clock(),
                                  lambda kind, content: None, lambda error: None)
        elif not self._ended:
            self._end(None)

    def _submit(self, request_id: bytes) -> None:
        if self._ended:
            return
        # At most one message's worth is looked at.
        part = self._jobs[self._sent:self._sent + _core.MAX_JOBS_PER_MESSAGE]
        part = part[:_core.jobs_that_fit(part)]
        more = self._sent + len(part) < len(self._jobs)
        self._session.request(
            lambda number: _core.encode_submit(number, request_id, self.id, part, more), self._clock(),
            lambda kind, content: self._on_submitted(request_id, part, more, kind, content), self._end)

    def _on_submitted(self, request_id: bytes, part: list[Job], more: bool, kind: str, content) -> None:
        if kind == "refused":
            self._on_refused(request_id, *content)
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
            self._submit(os.urandom(16))
        if not self._fetching:
            self._fetching = True
            self._fetch()

    def _on_refused(self, request_id: bytes, code: str, message: str, action_index, retry_after_ms: int,
                    retryable: bool) -> None:
        if code in _PASSING and self._clock() < self._busy_until:
            pause = min(max(retry_after_ms, 10), 1000) / 1000
            self._call_later(pause, lambda: self._submit(request_id))
            return
        blamed = _BLAMED.match(message)
        if blamed and not retryable and self._sent + int(blamed[1]) < len(self._jobs):
            # One job to blame: it gets its failure, the others run.
            place = self._sent + int(blamed[1])
            job = self._jobs.pop(place)
            index = self._places.pop(place)
            outcome = _core.failed_outcome(code, blamed[2], action_index, index, job.benchmark, job.actions)
            self._on_outcomes([(index, outcome)])
            if self._sent < len(self._jobs) or self.id:
                self._submit(os.urandom(16))
            else:
                self._end(None)
            return
        self._end(Refused(code, message, retryable))

    def _fetch(self) -> None:
        if self._ended:
            return
        self._session.request(
            lambda number: _core.encode_fetch(number, self.id, self._after, _LONG_POLL_MS), self._clock(),
            self._on_page, self._end, expected=_LONG_POLL_MS / 1000)

    def _on_page(self, kind: str, content) -> None:
        if self._ended:
            return
        if kind == "refused":
            self._end(Refused(content[0], content[1], content[4]))
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
