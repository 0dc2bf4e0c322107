"""Judges models by programs that they were not fitted to: `python -m loopfleet.models evaluate`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._core import nearest
from ..splits import KINDS, Split
from .comparison_model import ComparisonModel, pairwise_accuracy
from .cost_model import CostModel
from .errors import ModelError, need
from .measured import Measured
from .policy_model import PolicyModel

MODELS = ("trees", "network", "comparison", "comparison_network", "policy")
_NEEDS = {name: ("torch", "models,torch") if "network" in name else ("xgboost", "models") for name in MODELS}
_SHARES = (0.7, 0.1, 0.2)
_PAIRS = 20_000
_CHANCES = 200       # random choices, whose mean is given
_LEAST = 2           # schedules of a program, for peak@k to say something


@dataclass(frozen=True)
class Judgement:
    """How good a model's order of held-out programs' schedules is; means over programs, or pairs. None:
    no figure."""

    peak_at_1: float | None   # figure of its favourite schedule, as a share of the program's best
    peak_at_5: float | None   # of the best of its five favourites
    pairwise_accuracy: float | None  # share of pairs that differ by more than 5 % in which it names the faster one
    rmse_log2: float | None   # of log2(time); None: its numbers have no unit
    fit_s: float
    programs: int             # that the peaks are means over: a policy knows not all


_FIGURES = ("peak_at_1", "peak_at_5", "pairwise_accuracy", "rmse_log2", "fit_s")
_HEADS = ("peak@1", "peak@5", "pairwise", "RMSE(log2)", "fit, s")


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
        lines = [f"split by {self.split}, seed {self.seed}: {parts}", _line("model", *_HEADS)]
        for name, one in self.judgements.items():
            lines.append(_line(name, *(_told(getattr(one, figure), figure) for figure in _FIGURES)))
        return "\n".join(lines)


@dataclass(frozen=True)
class Spread:
    """A figure over several splits."""

    mean: float
    least: float
    most: float
    splits: int  # with a figure


@dataclass(frozen=True)
class Summary:
    """Figures of several evaluations, by model and by Judgement's names; None: none has a figure."""

    split: str
    seeds: list[int]
    figures: dict[str, dict[str, Spread | None]]

    @classmethod
    def of(cls, judged: Sequence[Evaluation]) -> Summary:
        """Of evaluations of the same models by the same kind of split."""
        figures = {model: {name: _spread([getattr(each.judgements[model], name) for each in judged])
                           for name in _FIGURES} for model in judged[0].judgements}
        return cls(judged[0].split, [each.seed for each in judged], figures)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        seeds = ", ".join(map(str, self.seeds))
        lines = [f"split by {self.split}, seeds {seeds}: mean (least to most)", _line("model", *_HEADS, width=22)]
        for model, figures in self.figures.items():
            cells = ("no figure" if one is None else
                     f"{_told(one.mean, name)} ({_told(one.least, name)} to {_told(one.most, name)})"
                     for name, one in figures.items())
            lines.append(_line(model, *cells, width=22))
        return "\n".join(lines)


def _line(name: str, *cells: str, width: int = 10) -> str:
    return " ".join([f"{name:>18}", *(f"{cell:>{width}}" for cell in cells)])


def _told(value: float | None, name: str) -> str:
    if value is None:
        return "no figure"
    return f"{value:.1f}" if name == "fit_s" else f"{value:.3f}"


def _spread(values: list[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    return Spread(statistics.fmean(known), min(known), max(known), len(known)) if known else None


def evaluate(rows: Iterable[Mapping[str, Any]] | Measured, models: Sequence[str] = MODELS, *, split: str = "region",
             seed: int = 0, threads: int = 0, use_suspect: bool = False) -> Evaluation:
    """Fits each of ``models`` to 70 % of the regions (or programs) of ``rows``, stops by 10 %, and
    judges by the other 20 %. Rows as Measured.of() takes them.

    ModelError: an unknown model or split, too few programs for three parts, or a package is missing.
    """
    return next(evaluations(rows, models, [seed], split=split, threads=threads, use_suspect=use_suspect))


def evaluations(rows: Iterable[Mapping[str, Any]] | Measured, models: Sequence[str], seeds: Iterable[int], *,
                split: str = "region", threads: int = 0, use_suspect: bool = False) -> Iterator[Evaluation]:
    """As evaluate(), for each of ``seeds``."""
    for name in models:
        if name not in MODELS:
            raise ModelError(f"unknown model '{name}'{nearest(name, list(MODELS))}; valid: {', '.join(MODELS)}")
    if split not in ("program", "region"):
        valid = [kind for kind in KINDS if kind != "device"]
        raise ModelError(f"unknown split '{split}'{nearest(split, valid)}; valid: {', '.join(valid)}")
    for name in models:  # before the first is fitted, which takes long
        need(*_NEEDS[name])
    data = Measured.of(rows, use_suspect=use_suspect)
    for seed in seeds:
        parts = split_parts(data, split, seed)
        test = parts["test"]
        programs = list(test.places_by_program())
        pairs = test.pairs(_PAIRS, np.random.default_rng(3))
        judgements = {}
        for name in models:
            since = time.perf_counter()
            scores, log2_ns = _scores(name, parts, seed, threads)
            took = time.perf_counter() - since
            judgements[name] = _judge(test, programs, scores, log2_ns, pairs, took)
        judgements["random"] = _judge_chance(test, programs, pairs, np.random.default_rng(seed))
        yield Evaluation(split, seed, {part: len(one) for part, one in parts.items()},
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
    share of the best that was measured. Programs with one schedule, or without scores, are left out;
    NaN: all are."""
    return _peak(data, scores, k, _judged(list(data.places_by_program()), scores))


def _peak(data: Measured, scores: np.ndarray, k: int, programs: list[np.ndarray]) -> float:
    peaks = []
    for places in programs:
        chosen = places[np.argsort(-scores[places], kind="stable")[:k]]
        peaks.append(data.elapsed_ns[places].min() / data.elapsed_ns[chosen].min())
    return float(np.mean(peaks)) if peaks else float("nan")


def _judged(programs: list[np.ndarray], scores: np.ndarray) -> list[np.ndarray]:
    """Those of places_by_program() for which peaks say something."""
    return [places for places in programs if len(places) >= _LEAST and np.isfinite(scores[places]).all()]


def _scores(name: str, parts: dict[str, Measured], seed: int, threads: int) -> tuple[np.ndarray, np.ndarray | None]:
    """(scores, the higher the faster; predicted log2(ns per operation) or None) of the test part."""
    train, validation, test = parts.values()
    if name in ("trees", "network"):
        model = CostModel(name, seed=seed, threads=threads).fit(train, validation)
        return -model.slowness(test.x), model.log_ns_per_flop(test.x)
    if name == "policy":
        return PolicyModel(seed=seed, threads=threads).fit(train).scores(test), None
    kind = "network" if name == "comparison_network" else "trees"
    return ComparisonModel(kind, seed=seed, threads=threads).fit(train, validation).scores(test.x), None


def _judge(test: Measured, programs: list[np.ndarray], scores: np.ndarray, log2_ns: np.ndarray | None,
           pairs: tuple[np.ndarray, np.ndarray], fit_s: float) -> Judgement:
    error = None if log2_ns is None else float(np.sqrt(np.mean((log2_ns - test.log_ns_per_flop) ** 2)))
    judged = _judged(programs, scores)
    means = (_peak(test, scores, 1, judged), _peak(test, scores, 5, judged), pairwise_accuracy(test, scores, pairs))
    return Judgement(*(None if np.isnan(mean) else mean for mean in means), error, fit_s, len(judged))


def _judge_chance(test: Measured, programs: list[np.ndarray], pairs: tuple[np.ndarray, np.ndarray],
                  rng: np.random.Generator) -> Judgement:
    tries = [_judge(test, programs, rng.random(len(test)), None, pairs, 0.0) for _ in range(_CHANCES)]
    means = [_spread([getattr(one, name) for one in tries]) for name in _FIGURES[:3]]
    return Judgement(*(None if each is None else each.mean for each in means), None, 0.0, tries[0].programs)
