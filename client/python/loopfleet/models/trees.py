"""Trees: gradient-boosted regression trees as NumPy arrays. xgboost fits them; predicting and
loading need it not. Its own files are not used: version 3.2 aborts the process on a damaged one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import need

_PATIENCE = 40        # rounds without an improvement on the validation part
_AT_ONCE = 1 << 18    # places in trees that are moved together, so that they fit a cache


@dataclass(frozen=True)
class Trees:
    """Nodes of all trees, each tree's in one piece. A row goes left where its feature is less than
    the threshold."""

    feature: np.ndarray    # int32[nodes]
    threshold: np.ndarray  # float32[nodes]; of a leaf: its value
    left: np.ndarray       # int32[nodes]: a later node; a leaf's is itself
    right: np.ndarray      # int32[nodes], likewise
    roots: np.ndarray      # int32[trees]

    def predict(self, x: np.ndarray) -> np.ndarray:
        """float64[rows]: the sum of the leaves' values, for float32[rows, features]."""
        found = np.zeros(len(x))
        step = max(1, _AT_ONCE // max(1, len(self.roots)))
        for begin in range(0, len(x), step):
            found[begin:begin + step] = self._predict_some(x[begin:begin + step])
        return found

    def _predict_some(self, x: np.ndarray) -> np.ndarray:
        first_column = np.repeat(np.arange(len(x)) * x.shape[1], len(self.roots))
        numbers = np.ascontiguousarray(x).ravel()
        children = np.stack([self.left, self.right], 1).ravel()
        at = np.tile(self.roots, len(x))
        while True:
            is_right = numbers.take(first_column + self.feature.take(at)) >= self.threshold.take(at)
            then = children.take(2 * at + is_right)
            if np.array_equal(then, at):
                return self.threshold.take(at).reshape(len(x), -1).sum(1, dtype=np.float64)
            at = then

    def to_arrays(self, name: str) -> dict[str, np.ndarray]:
        return {f"{name}.{field}": getattr(self, field) for field in self.__dataclass_fields__}

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray], name: str, features: int) -> Trees:
        """KeyError or ValueError: the arrays are no trees over so many features."""
        trees = cls(*(arrays[f"{name}.{field}"] for field in cls.__dataclass_fields__))
        count = len(trees.feature)
        kinds = {"feature": "i", "threshold": "f", "left": "i", "right": "i", "roots": "i"}
        for field, kind in kinds.items():
            column = getattr(trees, field)
            if column.ndim != 1 or column.dtype.kind != kind or (field != "roots" and len(column) != count):
                raise ValueError(f"its trees' {field} have shape {column.shape} and type {column.dtype}")
        places = np.arange(count)
        is_leaf = (trees.left == places) & (trees.right == places)
        goes_on = ((trees.left > places) & (trees.right > places) & (trees.left < count) & (trees.right < count))
        in_range = (trees.feature >= 0) & (trees.feature < features)
        if not ((is_leaf | goes_on) & in_range).all() or ((trees.roots < 0) | (trees.roots >= count)).any():
            raise ValueError("its trees lead to places that are not there")
        return trees


def fit_trees(x: np.ndarray, y: np.ndarray, *, objective: str, rounds: int, seed: int, threads: int,
              validation: tuple[np.ndarray, np.ndarray] | None = None, **parameters: Any) -> Trees:
    """``x`` is float32[rows, features], ``y`` float[rows]. With ``validation`` it keeps the rounds
    up to the best there. ``threads`` 0: all cores."""
    xgboost = need("xgboost", "models")
    settings = {"objective": objective, "max_depth": 8, "eta": 0.08, "subsample": 0.8, "colsample_bytree": 0.6,
                "min_child_weight": 3, "tree_method": "hist", "max_bin": 64, "nthread": threads, "seed": seed,
                "base_score": 0.0, "verbosity": 0, **parameters}
    data = xgboost.DMatrix(x, y, nthread=threads)
    if validation is None:
        return _trees_of(xgboost.train(settings, data, rounds, verbose_eval=False))
    judge = xgboost.DMatrix(*validation, nthread=threads)
    booster = xgboost.train(settings, data, rounds, evals=[(judge, "validation")], verbose_eval=False,
                            early_stopping_rounds=_PATIENCE)
    return _trees_of(booster[:booster.best_iteration + 1])


def _trees_of(booster: Any) -> Trees:
    """From xgboost's own description of a model, in JSON."""
    told = json.loads(bytes(booster.save_raw("json")))["learner"]["gradient_booster"]["model"]["trees"]
    parts: list[tuple[np.ndarray, ...]] = []
    roots, count = [], 0
    for tree in told:
        left, right = np.array(tree["left_children"], np.int32), np.array(tree["right_children"], np.int32)
        own = np.arange(len(left), dtype=np.int32)
        is_leaf = left < 0
        parts.append((np.where(is_leaf, 0, tree["split_indices"]).astype(np.int32),
                      np.array(tree["split_conditions"], np.float32),
                      np.where(is_leaf, own, left) + count, np.where(is_leaf, own, right) + count))
        roots.append(count)
        count += len(left)
    columns = [np.concatenate(column) for column in zip(*parts)]
    return Trees(columns[0], columns[1], columns[2].astype(np.int32), columns[3].astype(np.int32),
                 np.array(roots, np.int32))
