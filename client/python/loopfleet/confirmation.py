"""Confirmation: kernels measured again, and how far their first figures were off. The quickest of
many measurements is in part the luckiest, so its figure is biased; measuring a fixed set of kernels
again has no such bias. The rules are those of `loopfleet submit --confirm`."""

from __future__ import annotations

import contextlib
import json
import statistics
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ._core import JobError, Outcome, counted
from .errors import DeadlineExceeded
from .jobs import JobLike, make_job

REPEATS = 3  # measurements that confirm a figure
_PAUSES_S = (0.2, 0.4, 0.8)  # before each further batch of them
_LONGEST_S = 2.0             # no batch begins later

Answer = dict[str, Any]  # Outcome.to_dict(), or a line of a campaign's outcomes
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Confirmed:
    """A kernel measured again. Times are nanoseconds of one run."""

    benchmark: str              # URI, or IR text
    actions: list[str]
    elapsed_ns: float           # its first figure
    remeasured_ns: list[float]  # on its hardware class; of grade A or B, if any is
    disturbed: bool = False     # none is: a neighbour may have slowed all of them

    @classmethod
    def of(cls, first: Answer, again: Iterable[Answer]) -> Confirmed:
        same = [(answer["elapsed_ns"], answer["grade"]) for answer in again
                if answer["status"] == "ok" and _group(answer) == _group(first)]
        return cls(_group(first)[0], first["actions"], first["elapsed_ns"], figures_that_count(same),
                   disturbed=bool(same) and not any(grade in "AB" for _, grade in same))

    @property
    def confirmed_ns(self) -> float | None:
        """The median of the new figures; None: there is none."""
        return statistics.median(self.remeasured_ns) if self.remeasured_ns else None

    @property
    def bias(self) -> float | None:
        """By how much the first figure was too good: 0.02 is 2 % more GFLOP/s than the median of
        the new ones. None: there is none."""
        return self.confirmed_ns / self.elapsed_ns - 1 if self.remeasured_ns else None

    def to_dict(self) -> dict[str, Any]:
        """As in `loopfleet submit --confirm K --json`, without ``job``."""
        return {"benchmark": self.benchmark, "actions": self.actions, "elapsed_ns": self.elapsed_ns,
                "confirmed_ns": self.confirmed_ns, "bias": self.bias, "remeasured_ns": self.remeasured_ns,
                "disturbed": self.disturbed}


@dataclass(frozen=True)
class Confirmation:
    """Kernels measured again."""

    kernels: list[Confirmed]

    @property
    def bias(self) -> float | None:
        """The median bias; None: no kernel has a new figure."""
        return statistics.median(biases) if (biases := self._biases()) else None

    def deviation(self, share: float) -> float | None:
        """The quantile at ``share`` (0.5: the median) of the biases without their signs. None: no
        kernel has a new figure."""
        return float(np.quantile(np.abs(biases), share)) if (biases := self._biases()) else None

    def _biases(self) -> list[float]:
        return [kernel.bias for kernel in self.kernels if kernel.bias is not None]


def figures_that_count(figures: Sequence[tuple[float, str]]) -> list[float]:
    """Of (ns, grade) of one kernel: those of grade A or B, if there is one."""
    return [ns for ns, grade in figures if grade in "AB"] or [ns for ns, _ in figures]


class Turns:
    """Jobs measured ``repeats`` times each, in turns, so that drift affects all alike. What disturbs a busy host lasts for
    up to seconds, so those with fewer figures of grade A or B than that are measured as often again, a little later, three
    times at most. measure() does it: evaluates jobs() and adds the outcomes; while pause() is a number, it waits so many
    seconds and does it again.
    ``counts(place, outcome)``: whether an outcome counts, which is ok and of grade A or B."""

    def __init__(self, jobs: Sequence[JobLike], counts: Callable[[int, Outcome], bool], repeats: int = REPEATS):
        self.all, self._repeats, self._counts = jobs, repeats, counts
        self.outcomes: list[list[Outcome]] = [[] for _ in jobs]  # by job
        self._pauses = iter(_PAUSES_S)
        self._begun = time.monotonic()
        self._places = [*range(len(jobs))] * repeats

    def measure(self, evaluate: Callable[[list[JobLike]], Iterable[Outcome]], deadline: float | None = None) -> None:
        """DeadlineExceeded: of the first turn alone; later, the figures that there are, are enough."""
        self.add(evaluate(self.jobs()))
        with contextlib.suppress(DeadlineExceeded):
            while (pause := self.pause()) is not None:
                time.sleep(pause if deadline is None else max(0.0, min(pause, deadline - time.monotonic())))
                self.add(evaluate(self.jobs()))

    def pause(self) -> float | None:
        self._places = [place for place, outcomes in enumerate(self.outcomes)
                        if sum(each.ok and each.grade in "AB" and self._counts(place, each) for each in outcomes)
                        < self._repeats] * self._repeats
        if not self._places or time.monotonic() - self._begun >= _LONGEST_S:
            return None
        return next(self._pauses, None)

    def jobs(self) -> list[JobLike]:
        return [self.all[place] for place in self._places]

    def add(self, outcomes: Iterable[Outcome]) -> None:
        for place, outcome in zip(self._places, outcomes):
            self.outcomes[place].append(outcome)


def kernels_by_speed(answers: Iterable[tuple[Key, Answer]]) -> dict[tuple[str, str], list[Key]]:
    """(benchmark, hardware class) -> the keys of its kernels, the quickest first. Trees that became
    the same machine code are one kernel. Failures and figures of grade D are left out."""
    quickest: dict[tuple[str, str], dict[str, tuple[float, Key]]] = {}
    for key, answer in answers:
        if answer["status"] != "ok" or answer["grade"] == "D" or answer["hardware"] is None:
            continue
        kernels = quickest.setdefault(_group(answer), {})
        code, found = answer["compiler"]["code_hash"], (answer["elapsed_ns"], key)
        kernels[code] = min(found, kernels.get(code, found))
    return {group: [key for _, key in sorted(quickest[group].values())] for group in sorted(quickest)}


def _group(answer: Answer) -> tuple[str, str]:
    return answer["benchmark"] or answer["ir"], answer["hardware"]["class"]


class Winners:
    """The ``most`` quickest kernels of each benchmark and hardware class, by benchmark, the
    quickest first.

    ``results[i]`` is the outcome of ``jobs[i]``; ValueError if it is not."""

    def __init__(self, jobs: Iterable[JobLike], results: Sequence[Outcome], most: int):
        jobs = list(jobs)
        if len(jobs) != len(results):
            raise ValueError(f"{counted(len(jobs), 'job', 'jobs')}, but {counted(len(results), 'result', 'results')}; give the jobs that the results are of")
        if most < 1:
            raise ValueError(f"'most' must be at least 1, not {most}")
        answers = {place: outcome.to_dict() for place, outcome in enumerate(results) if outcome.ok}
        places = [place for kernels in kernels_by_speed(answers.items()).values() for place in kernels[:most]]
        self._first = [answers[place] for place in places]
        self._again = [_repeated(jobs[place], answers[place], place) for place in places]

    def turns(self, repeats: int) -> Turns:
        if repeats < 1:
            raise ValueError(f"'repeats' must be at least 1, not {repeats}")
        return Turns(self._again, lambda place, outcome: _group(outcome.to_dict()) == _group(self._first[place]), repeats)

    def confirmed(self, outcomes: Sequence[Sequence[Outcome]]) -> Confirmation:
        """What Turns.outcomes show."""
        return Confirmation([Confirmed.of(first, [each.to_dict() for each in again])
                             for first, again in zip(self._first, outcomes)])


def _repeated(job: JobLike, answer: Answer, place: int) -> dict[str, Any]:
    """The fields of ``job``, whose outcome is ``answer``, to be measured whatever the store has, and
    never cut."""
    try:
        fields = json.loads(make_job(job).line)
    except JobError:  # a job without a figure
        fields = {}
    if any(fields.get(name) != answer.get(name) for name in ("benchmark", "ir", "actions")):
        raise ValueError(f"results[{place}] is not the outcome of jobs[{place}]")
    fields.pop("cut_above_ns", None)
    return {**fields, "fresh": True}
