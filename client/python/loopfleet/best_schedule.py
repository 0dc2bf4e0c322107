"""BestSchedule: one of the fastest known schedules of a program (Client.find_best)."""

from __future__ import annotations

from dataclasses import dataclass

from ._core import Job, LoopTree, Outcome


@dataclass(frozen=True)
class BestSchedule:
    job: Job          # as it was measured; evaluate it again with Client.submit_job
    outcome: Outcome  # its measurement

    @property
    def tree(self) -> LoopTree:
        return self.job.tree
