"""Gradient-boosted trees (xgboost), as CostModel and ComparisonModel use them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import need

_PATIENCE = 40  # rounds without an improvement on the validation part


def fit_trees(x: np.ndarray, y: np.ndarray, *, objective: str, rounds: int, seed: int, threads: int,
              validation: tuple[np.ndarray, np.ndarray] | None = None, **parameters: Any) -> Any:
    """A booster. ``x`` is float32[rows, features], ``y`` float[rows]. With ``validation`` it keeps
    the round that does best there. ``threads`` 0: all cores."""
    xgboost = need("xgboost", "models")
    settings = {"objective": objective, "max_depth": 8, "eta": 0.08, "subsample": 0.8, "colsample_bytree": 0.6,
                "min_child_weight": 3, "tree_method": "hist", "max_bin": 64, "nthread": threads, "seed": seed,
                "verbosity": 0, **parameters}
    data = xgboost.DMatrix(x, y, nthread=threads)
    if validation is None:
        return xgboost.train(settings, data, rounds, verbose_eval=False)
    judge = xgboost.DMatrix(*validation, nthread=threads)
    booster = xgboost.train(settings, data, rounds, evals=[(judge, "validation")], verbose_eval=False,
                            early_stopping_rounds=_PATIENCE)
    return booster[:booster.best_iteration + 1]


def predict_trees(booster: Any, x: np.ndarray) -> np.ndarray:
    """float32[rows]"""
    return booster.inplace_predict(x)


def trees_to_array(booster: Any) -> np.ndarray:
    """In xgboost's own format (UBJSON)."""
    return np.frombuffer(bytes(booster.save_raw("ubj")), np.uint8)


def trees_of_array(array: np.ndarray, threads: int) -> Any:
    """ValueError: it holds no trees."""
    xgboost = need("xgboost", "models")
    try:
        booster = xgboost.Booster({"nthread": threads})
        booster.load_model(bytearray(array.tobytes()))
    except xgboost.core.XGBoostError as error:
        raise ValueError(f"xgboost refuses its trees: {str(error).splitlines()[0]}") from error
    return booster
