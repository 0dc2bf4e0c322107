"""Remeasurement: a share of a campaign's points, and its winners, measured again at its end."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..confirmation import REPEATS, Answer, Confirmation, Confirmed, kernels_by_speed
from .log import OUTCOMES, REMEASURED, check_seal
from .point import Point, points_at
from .spec import Spec

Key = tuple[int, int]  # point and copy
_STREAM = (1 << 63) - 1  # of random numbers; those of the points are their indices


class Answers:
    """(key, answer) of each line of a campaign's outcomes, read again by each loop."""

    def __init__(self, path: Path):
        self._path = path

    def __iter__(self) -> Iterator[tuple[Key, Answer]]:
        with open(self._path, encoding="utf-8") as file:
            for line in file:
                if line.endswith("\n"):  # else it is being written
                    row = json.loads(line)
                    yield (row["point"], row["copy"]), row["outcome"]


def sampled(points: int, share: float, seed: int) -> set[int]:
    """A random ``share`` of the indices of points, rounded up. A larger share contains a smaller
    one."""
    rng = np.random.Generator(np.random.Philox(key=[seed, _STREAM]))
    return set(rng.permutation(points)[:math.ceil(round(share * points, 6))].tolist())


@dataclass(frozen=True)
class Picks:
    """The keys that are measured again."""

    sample: list[Key]   # a random share of the points, without the failed ones
    winners: list[Key]  # the quickest kernel of as many benchmarks, those with most kernels first

    @classmethod
    def of(cls, answers: Answers, points: int, share: float, seed: int) -> Picks:
        drawn = sampled(points, share, seed)
        sample = [key for key, answer in answers if answer["status"] == "ok" and key[0] in drawn and key[1] == 0]
        # A benchmark's only kernel was not selected for its speed, so its figure is not biased.
        groups = [kernels for kernels in kernels_by_speed(answers).values() if len(kernels) > 1]
        groups.sort(key=len, reverse=True)
        return cls(sorted(sample), [kernels[0] for kernels in groups[:len(drawn)]])

    def rounds(self) -> list[tuple[Key, int]]:
        """(key, number of the round), in rounds over all, so that drift affects all alike."""
        keys = sorted({*self.sample, *self.winners})
        return [(key, number) for number, key in itertools.product(range(1, REPEATS + 1), keys)]


@dataclass(frozen=True)
class Remeasurement:
    """What the new figures show."""

    sample: Confirmation
    winners: Confirmation

    @classmethod
    def of(cls, picks: Picks, first: Answers, again: Answers) -> Remeasurement:
        wanted = {*picks.sample, *picks.winners}
        first_of = {key: answer for key, answer in first if key in wanted}
        again_of: dict[Key, list[Answer]] = {key: [] for key in wanted}
        for key, answer in again:
            if key in wanted:
                again_of[key].append(answer)

        def confirmation(keys: list[Key]) -> Confirmation:
            return Confirmation([Confirmed.of(first_of[key], again_of[key]) for key in keys])

        return cls(confirmation(picks.sample), confirmation(picks.winners))

    def __str__(self) -> str:
        parts = []
        if self.sample.bias is not None:
            parts.append(f"{_count(self.sample, 'sampled point')}: first figures off by "
                         f"{_percent(self.sample.deviation(0.5))} (median), "
                         f"{_percent(self.sample.deviation(0.95))} (95th percentile)")
        if self.winners.bias is not None:
            parts.append(f"{_count(self.winners, 'winner')}: too good by {_percent(self.winners.bias)} (median)")
        return "; ".join(parts) or "no new figures"


def _picks(spec: Spec, folder: Path) -> Picks:
    return Picks.of(Answers(folder / OUTCOMES), spec.points, spec.confirm_share, spec.seed)


def points_again(spec: Spec, folder: Path) -> list[Point]:
    """The points to measure again, in order; all points must have an outcome."""
    walked: dict[Key, Point] = {}
    rounds = []
    for (index, copy), number in _picks(spec, folder).rounds():
        if (index, copy) not in walked:
            walked[index, copy] = points_at(spec, index)[copy]
        rounds.append(replace(walked[index, copy], round=number))
    return rounds


def remeasured(spec: Spec, folder: str | Path) -> Remeasurement | None:
    """What the measurements of ``spec.confirm_share`` show; None: there are none yet. Reads only."""
    folder = Path(folder)
    check_seal(folder, spec)
    if not spec.confirm_share or not (folder / REMEASURED).exists():
        return None
    return Remeasurement.of(_picks(spec, folder), Answers(folder / OUTCOMES), Answers(folder / REMEASURED))


def _count(confirmation: Confirmation, noun: str) -> str:
    count = sum(kernel.bias is not None for kernel in confirmation.kernels)
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
