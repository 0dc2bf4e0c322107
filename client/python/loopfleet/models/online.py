"""OnlineScorer: chooses what a search measures next, and learns from its figures as they come."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from .schedule_features import features
from .trees import Trees, fit_trees

if TYPE_CHECKING:
    from .cost_model import CostModel

_FIRST_FIT = 16       # figures
_GROWTH = 1.2         # more of them, and it is fitted again
_ROUNDS = 80
_SHALLOW = {"max_depth": 5, "eta": 0.15, "min_child_weight": 1}


class OnlineScorer:
    """Of one benchmark. With a ``base`` model it learns what that one gets wrong; without, it knows
    nothing until it has 16 figures, and scores all alike. Fits again when there are a fifth more
    figures; ``seconds`` counts the time spent on that and on scoring."""

    def __init__(self, benchmark: str | None, ir: str | None, base: CostModel | None, seed: int = 0):
        self._benchmark, self._ir, self._base, self._seed = benchmark, ir, base, seed
        self._x: list[np.ndarray] = []
        self._log_ns: list[float] = []
        self._fitted_at = 0
        self._trees: Trees | None = None
        self.fits = 0
        self.seconds = 0.0

    def __call__(self, schedules: list[list[str]]) -> list[float]:
        """A number for each list of actions: log2 of its time but for a constant; the lower, the
        quicker."""
        since = time.perf_counter()
        x = self._features(schedules)
        scores = np.zeros(len(x)) if self._base is None else self._base.slowness(x)
        if self._trees is not None:
            scores = scores + self._trees.predict(x)
        self.seconds += time.perf_counter() - since
        return scores.tolist()

    def learn(self, schedules: list[list[str]], elapsed_ns: list[float | None]) -> None:
        """New figures; None: it has none, and nothing is learnt from it."""
        since = time.perf_counter()
        known = [(actions, ns) for actions, ns in zip(schedules, elapsed_ns) if ns is not None]
        if known:
            self._x.append(self._features([actions for actions, _ in known]))
            self._log_ns += [float(np.log2(ns)) for _, ns in known]
        if len(self._log_ns) >= max(_FIRST_FIT, _GROWTH * self._fitted_at):
            self._fit()
        self.seconds += time.perf_counter() - since

    def _fit(self) -> None:
        x, y = np.concatenate(self._x), np.array(self._log_ns)
        if self._base is not None:
            y = y - self._base.slowness(x)
        y -= y.mean()  # the same for all: it moves no score
        # One thread: the other cores are measuring.
        self._trees = fit_trees(x, y, objective="reg:squarederror", rounds=_ROUNDS, seed=self._seed, threads=1,
                                **_SHALLOW)
        self._fitted_at = len(y)
        self.fits += 1

    def _features(self, schedules: list[list[str]]) -> np.ndarray:
        return features({"benchmark": self._benchmark, "ir": self._ir, "actions": actions} for actions in schedules)
