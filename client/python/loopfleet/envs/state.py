"""The state of an episode in CompilerGym's format: one row of CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO

HEADER = ("benchmark", "reward", "walltime", "commandline")
START = ("start_cursor", "merge_all_first")  # extra columns, if a state has another start than the default


@dataclass(frozen=True)
class EnvState:
    benchmark: str
    commandline: str           # names of the actions, separated by commas
    walltime: float = field(compare=False)  # seconds since reset; states of equal walks are equal
    reward: float | None = None  # total of the episode; None: no reward space
    start_cursor: int = 0          # cursor at the start
    merge_all_first: bool = False  # whether the start tree was merged

    @property
    def actions(self) -> list[str]:
        return [name for name in self.commandline.replace(",", " ").split() if name]


@dataclass(frozen=True)
class ValidationResult:
    """The result of replaying a state."""

    state: EnvState
    actions_replay_failed: bool = False
    reward_validated: bool = False
    reward_validation_failed: bool = False
    benchmark_semantics_validated: bool = False
    benchmark_semantics_validation_failed: bool = False
    walltime: float = 0.0
    errors: tuple[str, ...] = field(default_factory=tuple)

    def okay(self) -> bool:
        return not (self.actions_replay_failed or self.reward_validation_failed
                    or self.benchmark_semantics_validation_failed)


def write_states(file: IO[str], states: Iterable[EnvState]) -> None:
    states = list(states)
    start = START if any(state.start_cursor or state.merge_all_first for state in states) else ()
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(HEADER + start)
    for state in states:
        rows.writerow((state.benchmark, "" if state.reward is None else state.reward, state.walltime,
                       state.commandline, *(int(getattr(state, name)) for name in start)))


def read_states(file: IO[str]) -> Iterator[EnvState]:
    rows = csv.DictReader(file)
    missing = set(HEADER) - set(rows.fieldnames or ())
    if missing:
        raise ValueError(f"no column '{sorted(missing)[0]}'; the header is {','.join(HEADER)}")
    for row in rows:
        yield EnvState(row["benchmark"], row["commandline"], float(row["walltime"] or 0),
                       float(row["reward"]) if row["reward"] else None, int(row.get("start_cursor") or 0),
                       bool(int(row.get("merge_all_first") or 0)))
