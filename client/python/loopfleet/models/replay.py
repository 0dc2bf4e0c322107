"""Replay: the last transitions of agents, from which a learner draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_BIAS = 0.4   # how far importance weights correct what priorities favour (beta of prioritized replay)


class Transitions(NamedTuple):
    """One row for each step."""

    observation: np.ndarray  # float32[rows, features]
    action: np.ndarray       # int64[rows]
    reward: np.ndarray       # float32[rows]
    following: np.ndarray    # float32[rows, features]
    mask: np.ndarray         # bool[rows, actions]: what is legal next
    over: np.ndarray         # float32[rows]: 1 where the episode ended

    def where(self, mask: np.ndarray) -> Transitions:
        return Transitions(*(column[mask] for column in self))


class Replay:
    """The last ``size`` transitions. ``priority`` 0 draws evenly, 1 in proportion to the last error
    of each (alpha of prioritized replay)."""

    def __init__(self, size: int, features: int, actions: int, priority: float = 0.0):
        self._columns = Transitions(np.zeros((size, features), np.float32), np.zeros(size, np.int64),
                                    np.zeros(size, np.float32), np.zeros((size, features), np.float32),
                                    np.zeros((size, actions), bool), np.zeros(size, np.float32))
        self._weights = np.zeros(size)  # of being drawn
        self._priority = priority
        self.size = size
        self.count = 0  # of all that were added

    def __len__(self) -> int:
        return min(self.count, self.size)

    def add(self, rows: Transitions, errors: np.ndarray | None = None) -> None:
        """``errors``: what the values are off by, float[rows]; None: as much as any so far."""
        places = np.arange(self.count, self.count + len(rows.action)) % self.size
        for column, values in zip(self._columns, rows):
            column[places] = values
        known = self._weights[:len(self)]
        self._weights[places] = self._weight(errors) if errors is not None else max(known.max(initial=0.0), 1.0)
        self.count += len(rows.action)

    def draw(self, many: int, rng: np.random.Generator) -> tuple[np.ndarray, Transitions, np.ndarray]:
        """(places, transitions, importance weights float32[many], at most 1)."""
        weights = self._weights[:len(self)]
        sums = np.cumsum(weights)
        places = np.minimum(np.searchsorted(sums, rng.random(many) * sums[-1], side="right"), len(self) - 1)
        chances = weights[places] / sums[-1]
        importance = (len(self) * chances) ** -_BIAS
        return (places, Transitions(*(column[places] for column in self._columns)),
                (importance / importance.max()).astype(np.float32))

    def correct(self, places: np.ndarray, errors: np.ndarray) -> None:
        """New errors of what draw() gave."""
        self._weights[places] = self._weight(errors)

    def _weight(self, errors: np.ndarray) -> np.ndarray:
        return (np.abs(errors) + 1e-3) ** self._priority
