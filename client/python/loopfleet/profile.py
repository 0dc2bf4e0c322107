"""Profile: where the time of a kernel goes, beside its loop tree (docs/PROFILE.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from . import _core
from ._core import Job, Outcome
from .errors import LoopfleetError
from .jobs import Actions, JobLike, job, make_job

Level = Literal["roots", "loops", "lines"]


@dataclass(frozen=True)
class ProfileLine:
    """One node of the tree, or one part of what runs for it. Shares are of the kernel's time, 0 to 1."""

    ref: int                # the node's number, as in L3
    part: str               # "node", "pack", "zero", "combine", or "outside" of all nodes
    text: str               # as printed in the tree, or what the part is
    share: float            # roots and loops: with all inside; lines: of this line alone
    low: float              # the 95 % interval: of the true share by samples, of the median over repetitions
    high: float
    total: float            # with all inside
    cycles: float           # of one run, in ticks of the clock that is read (GPU: ns); 0 of lines
    entries: float          # of one run; 0 of lines
    samples: float          # 0 of roots and loops
    fused_into: int | None  # the operation whose instructions do this one's work
    known: bool             # False: the profile does not say, and the figures are 0


@dataclass(frozen=True)
class Profile:
    """What became of a job that asks where the time goes. Check ``ok``: a failed one has no lines. It holds no
    figure: the kernel was instrumented or interrupted."""

    job: Job
    outcome: Outcome
    level: str
    lines: tuple[ProfileLine, ...]  # in the order of the tree
    overhead: float                 # 0.02: the instrumented or sampled kernel took 2 % longer than the plain one
    run_ns: float                   # of the plain kernel beside it
    note: str                       # what is not shown, and why; "": all is

    @classmethod
    def of(cls, asked: Job, outcome: Outcome) -> Profile:
        level = json.loads(asked.line)["profile"]
        if not outcome.ok:
            return cls(asked, outcome, level, (), 0.0, 0.0, "")
        values = outcome.observed
        if values is None:
            raise LoopfleetError("the coordinator passed over the field 'profile' and gave a figure: it is older than "
                                 "this client; upgrade it")
        lines = tuple(ProfileLine(**row) for row in _core.profile_rows(asked, outcome))
        return cls(asked, outcome, level, lines, values["overhead"], values["run_ns"], values["note"])

    @property
    def ok(self) -> bool:
        return self.outcome.ok

    @property
    def status(self) -> str:
        """"ok", or the failure's code."""
        return self.outcome.status

    @property
    def message(self) -> str:
        """Why it failed, in one line; "" if it did not."""
        return self.outcome.message

    def line(self, ref: int, part: str = "node") -> ProfileLine:
        """KeyError: there is none."""
        for each in self.lines:
            if each.ref == ref and each.part == part:
                return each
        raise KeyError(f"no line of L{ref}, part '{part}'")

    def __str__(self) -> str:
        return _core.profile_text(self.job, self.outcome) if self.ok else f"{self.status}: {self.message}\n"

    def __repr__(self) -> str:
        return f"<Profile by {self.level}: {f'{len(self.lines)} lines' if self.ok else self.status}>"


def profile_job(given: JobLike | None, actions: Actions, level: Level, fields: Mapping[str, Any]) -> Job:
    """The job that profiles the tree of another one, whose fields about figures are left out, or of a benchmark
    after some actions, or of ``ir=``. JobError: it is no loop schedule, there is no such level, or a field about
    figures was given."""
    if given is None or isinstance(given, str):
        _core.profiled_job(job(given, actions, **fields), level)  # it has a profile, and of this level
        return job(given, actions, **fields, profile=level)
    if actions or fields:
        raise TypeError("a job has its own actions and fields")
    return _core.profiled_job(make_job(given), level)
