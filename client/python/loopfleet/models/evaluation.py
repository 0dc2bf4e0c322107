"""Judges models by programs that they were not fitted to: `python -m loopfleet.models evaluate`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._core import nearest
from ..splits import KINDS, Split
from .comparison_model import ComparisonModel, pairwise_accuracy
from .cost_model import CostModel
from .errors import ModelError, need
from .measured import Measured

MODELS = ("trees", "network", "comparison", "comparison_network")
_NEEDS = {name: ("torch", "models,torch") if "network" in name else ("xgboost", "models") for name in MODELS}
_SHARES = (0.7, 0.1, 0.2)
_PAIRS = 20_000
_CHANCES = 200       # random choices, whose mean is given
_LEAST = 2           # schedules of a program, for peak@k to say something


@dataclass(frozen=True)
class Judgement:
    """How good a model's order of held-out programs' schedules is; means over programs, or pairs."""

    peak_at_1: float        # figure of its favourite schedule, as a share of the program's best
    peak_at_5: float        # of the best of its five favourites
    pairwise_accuracy: float  # share of pairs that differ by more than 5 % in which it names the faster one
    rmse_log2: float | None   # of log2(time); None: its numbers have no unit
    fit_s: float


@dataclass(frozen=True)
class Evaluation:
    """Judgements by model. "random" beside them chooses and compares by chance."""

    split: str
    seed: int
    rows: dict[str, int]       # by part
    programs: dict[str, int]
    judgements: dict[str, Judgement]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        parts = ", ".join(f"{part} {self.rows[part]:,} rows of {self.programs[part]} programs" for part in self.rows)
        lines = [f"split by {self.split}, seed {self.seed}: {parts}",
                 f"{'model':>18} {'peak@1':>7} {'peak@5':>7} {'pairwise':>8} {'RMSE(log2)':>10} {'fit, s':>7}"]
        for name, one in self.judgements.items():
            error = "-" if one.rmse_log2 is None else f"{one.rmse_log2:.3f}"
            lines.append(f"{name:>18} {one.peak_at_1:7.3f} {one.peak_at_5:7.3f} {one.pairwise_accuracy:8.3f} {error:>10} "
                         f"{one.fit_s:7.1f}")
        return "\n".join(lines)


def evaluate(rows: Iterable[Mapping[str, Any]] | Measured, models: Sequence[str] = MODELS, *, split: str = "region",
             seed: int = 0, threads: int = 0, use_suspect: bool = False) -> Evaluation:
    """Fits each of ``models`` to 70 % of the regions (or programs) of ``rows``, stops by 10 %, and
    judges by the other 20 %. Rows as Measured.of() takes them.

    ModelError: an unknown model or split, too few programs for three parts, or a package is missing.
    """
    for name in models:
        if name not in MODELS:
            raise ModelError(f"unknown model '{name}'{nearest(name, list(MODELS))}; valid: {', '.join(MODELS)}")
    if split not in ("program", "region"):
        valid = [kind for kind in KINDS if kind != "device"]
        raise ModelError(f"unknown split '{split}'{nearest(split, valid)}; valid: {', '.join(valid)}")
    for name in models:  # before the first is fitted, which takes long
        need(*_NEEDS[name])
    data = Measured.of(rows, use_suspect=use_suspect)
    parts = split_parts(data, split, seed)
    test = parts["test"]
    pairs = test.pairs(_PAIRS, np.random.default_rng(3))
    judgements = {}
    for name in models:
        since = time.perf_counter()
        scores, log2_ns = _scores(name, parts, seed, threads)
        took = time.perf_counter() - since
        judgements[name] = _judge(test, scores, log2_ns, pairs, took)
    judgements["random"] = _judge_chance(test, pairs, np.random.default_rng(seed))
    return Evaluation(split, seed, {part: len(one) for part, one in parts.items()},
                      {part: len(np.unique(one.program)) for part, one in parts.items()}, judgements)


def split_parts(data: Measured, split: str, seed: int) -> dict[str, Measured]:
    """Train, validation and test by the hash of the program or region, as exports are split.
    ModelError: one of them is empty."""
    chosen = Split(split, _SHARES, seed)
    keys = data.program if split == "program" else data.region
    part_of = {key: chosen.part_of_key(key) for key in np.unique(keys)}
    part = np.array([part_of[key] for key in keys])
    parts = {}
    for name in ("train", "validation", "test"):
        mask = part == name
        if not mask.any():
            raise ModelError(f"{len(part_of)} {split}s leave the part '{name}' empty: measure more of them, or take "
                             "another seed")
        parts[name] = data.take(mask)
    return parts


def peak_at(data: Measured, scores: np.ndarray, k: int) -> float:
    """Mean over programs: the best figure among the ``k`` schedules with the highest scores, as a
    share of the best that was measured. Programs with one schedule are left out."""
    peaks = []
    for places in data.places_by_program():
        if len(places) < _LEAST:
            continue
        chosen = places[np.argsort(-scores[places], kind="stable")[:k]]
        peaks.append(data.elapsed_ns[places].min() / data.elapsed_ns[chosen].min())
    return float(np.mean(peaks)) if peaks else float("nan")


def _scores(name: str, parts: dict[str, Measured], seed: int, threads: int) -> tuple[np.ndarray, np.ndarray | None]:
    """(scores, the higher the faster; predicted log2(ns per operation) or None) of the test part."""
    train, validation, test = parts.values()
    if name in ("trees", "network"):
        model = CostModel(name, seed=seed, threads=threads).fit(train, validation)
        return -model.slowness(test.x), model.log_ns_per_flop(test.x)
    kind = "network" if name == "comparison_network" else "trees"
    return ComparisonModel(kind, seed=seed, threads=threads).fit(train, validation).scores(test.x), None


def _judge(test: Measured, scores: np.ndarray, log2_ns: np.ndarray | None, pairs: tuple[np.ndarray, np.ndarray],
           fit_s: float) -> Judgement:
    error = None if log2_ns is None else float(np.sqrt(np.mean((log2_ns - test.log_ns_per_flop) ** 2)))
    return Judgement(peak_at(test, scores, 1), peak_at(test, scores, 5), pairwise_accuracy(test, scores, pairs), error,
                     fit_s)


def _judge_chance(test: Measured, pairs: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> Judgement:
    tries = [_judge(test, rng.random(len(test)), None, pairs, 0.0) for _ in range(_CHANCES)]
    return Judgement(*(float(np.mean([getattr(one, name) for one in tries]))
                       for name in ("peak_at_1", "peak_at_5", "pairwise_accuracy")), None, 0.0)
