"""CostModel: predicts how long a schedule takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._core import nearest
from .errors import BadModelFile, MissingPackage, ModelError, NotFitted, need
from .measured import Measured
from .model_file import check_features, options_of, read_model, write_model
from .network import ScoreNetwork
from .online import OnlineScorer
from .schedule_features import FEATURE_NAMES, PROGRAM_FEATURES, Schedule, features
from .trees import Trees, fit_trees

KINDS = ("trees", "network")
_PROGRAM_COLUMNS = [FEATURE_NAMES.index(name) for name in PROGRAM_FEATURES]
_RIDGE = 1.0  # counts as one program that says "no effect"


class CostModel:
    """Gradient-boosted trees (``kind="trees"``, xgboost) or a small network (``kind="network"``,
    torch) for how much slower a schedule is than the program's quickest, and a model of the program
    alone (trees, or for a network a line) for how quick that one is. So what differs between
    programs does not hide what differs within them.

        model = CostModel().fit(read_rows("data"))
        model.predict([("mm-v0/mm128_160_224", ["swap_down", "split_8"])])    # nanoseconds
        loopfleet.search("mm-v0/mm128_160_224", scorer=model, seconds=10)     # goes on learning
    """

    def __init__(self, kind: str = "trees", *, rounds: int = 600, epochs: int = 60, seed: int = 0, threads: int = 0):
        """``rounds``: most trees; ``epochs``: of the network; ``threads``: of xgboost, 0 for all
        cores. ModelError: unknown kind."""
        check_kind(kind)
        self.kind, self.rounds, self.epochs, self.seed, self.threads = kind, rounds, epochs, seed, threads
        self._fitted: Any = None  # Trees or a ScoreNetwork: log2 of the time over the quickest's
        self._line = np.zeros(len(PROGRAM_FEATURES) + 1)  # log2 of the quickest's nanoseconds per operation,
        self._residual: Trees | None = None               # and trees for what the line gets wrong; None: nothing

    @property
    def is_fitted(self) -> bool:
        return self._fitted is not None

    def fit(self, rows: Iterable[Mapping[str, Any]] | Measured,
            validation: Iterable[Mapping[str, Any]] | Measured | None = None) -> CostModel:
        """Fits the model to rows as Measured.of() takes them. ``validation`` rows, of other programs,
        decide when to stop; without them a tenth of the programs of ``rows`` does. Returns itself."""
        data, judge = with_validation(rows, validation, self.seed)
        quickest = data.take([places[np.argmin(data.elapsed_ns[places])] for places in data.places_by_program()])
        self._line = _line_of(quickest)
        self._residual = None
        y, judge_y = data.slowness, judge.slowness
        if self.kind == "trees":
            # Absolute errors: a few very slow schedules matter no more than others.
            wrong = quickest.log_ns_per_flop - _columns(quickest.x) @ self._line
            self._residual = fit_trees(quickest.x[:, _PROGRAM_COLUMNS], wrong, objective="reg:squarederror", rounds=100,
                                       seed=self.seed, threads=self.threads, max_depth=3,
                                       min_child_weight=2, colsample_bytree=1.0)
            self._fitted = fit_trees(data.x, y, objective="reg:absoluteerror", rounds=self.rounds, seed=self.seed,
                                     threads=self.threads, validation=(judge.x, judge_y))
            return self
        network = ScoreNetwork.for_features(data.x, self.seed)
        x, wanted = network.scaled(data.x), need("torch", "models,torch").from_numpy(y.astype(np.float32))
        network.fit(len(data), lambda part: (network.call(x[part]) - wanted[part]).abs().mean(), self.epochs,
                    self.seed, lambda: float(np.mean(np.abs(network.predict(judge.x) - judge_y))))
        self._fitted = network
        return self

    def predict(self, schedules: Iterable[Schedule]) -> np.ndarray:
        """float64[schedules]: nanoseconds of one run. NotFitted; JobError: a bad schedule."""
        x = features(schedules)
        flop_count = np.exp2(x[:, FEATURE_NAMES.index("flop_count")].astype(np.float64)) - 1
        return np.exp2(self.log_ns_per_flop(x)) * np.maximum(flop_count, 1)

    def slowness(self, x: np.ndarray) -> np.ndarray:
        """float64[rows]: log2 of the time over the time of the program's quickest schedule, for
        features float32[rows, features]. NotFitted."""
        if self._fitted is None:
            raise NotFitted("this CostModel has learnt nothing yet: call fit(rows) or CostModel.load(path)")
        found = self._fitted.predict(x)
        return found.astype(np.float64)

    def log_ns_per_flop(self, x: np.ndarray) -> np.ndarray:
        """float64[rows]: log2 of nanoseconds per floating-point operation; as slowness()."""
        quickest = _columns(x) @ self._line
        if self._residual is not None:
            quickest = quickest + self._residual.predict(x[:, _PROGRAM_COLUMNS])
        return self.slowness(x) + quickest

    def scorer_for(self, benchmark: str | None, ir: str | None) -> OnlineScorer:
        """What loopfleet.search asks which schedules to measure. It learns from the search's
        figures on top of this model, which stays as it is."""
        return OnlineScorer(benchmark, ir, self if self.is_fitted else None, seed=self.seed)

    def save(self, path: str | Path) -> None:
        """Writes one file (.npz). NotFitted."""
        if self._fitted is None:
            raise NotFitted("this CostModel has learnt nothing yet: there is nothing to save")
        if self._residual is None:
            arrays = self._fitted.to_arrays()
        else:
            arrays = {**self._fitted.to_arrays("trees"), **self._residual.to_arrays("residual")}
        facts = {"model": self.kind, "line": self._line.tolist(), "features": FEATURE_NAMES,
                 "rounds": self.rounds, "epochs": self.epochs, "seed": self.seed}
        write_model(path, "CostModel", facts, arrays)

    @classmethod
    def load(cls, path: str | Path) -> CostModel:
        """Reads a file of save(), and runs none of it. BadModelFile."""
        facts, arrays = read_model(path, "CostModel")
        check_features(path, facts, FEATURE_NAMES)
        try:
            model = cls(facts["model"], **options_of(facts, int, "rounds", "epochs", "seed"))
            model._line = np.array([float(each) for each in facts["line"]])
            if model.kind == "trees":
                model._residual = Trees.of_arrays(arrays, "residual", len(PROGRAM_FEATURES))
            model._fitted = (Trees.of_arrays(arrays, "trees", len(FEATURE_NAMES)) if model.kind == "trees" else
                             ScoreNetwork.of_arrays(arrays))
        except MissingPackage:
            raise
        except (KeyError, TypeError, ValueError, RuntimeError, ModelError) as error:
            raise BadModelFile(f"{path} is damaged: {error}") from error
        return model


def _columns(x: np.ndarray) -> np.ndarray:
    """float64[rows, program features + 1]"""
    return np.hstack([x[:, _PROGRAM_COLUMNS].astype(np.float64), np.ones((len(x), 1))])


def _line_of(quickest: Measured) -> np.ndarray:
    """Ridge regression over programs; the constant is free."""
    columns, y = _columns(quickest.x), quickest.log_ns_per_flop
    penalty = _RIDGE * np.eye(columns.shape[1])
    penalty[-1, -1] = 1e-9
    return np.linalg.solve(columns.T @ columns + penalty, columns.T @ y)


def check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ModelError(f"unknown kind '{kind}'{nearest(kind, list(KINDS))}; valid: {', '.join(KINDS)}")


def with_validation(rows: Iterable[Mapping[str, Any]] | Measured,
                    validation: Iterable[Mapping[str, Any]] | Measured | None, seed: int) -> tuple[Measured, Measured]:
    """Rows to fit and rows to judge by. Without ``validation`` a tenth of the programs, or of the
    rows if there is one program only."""
    data = Measured.of(rows)
    if validation is not None:
        return data, Measured.of(validation)
    rng = np.random.default_rng(seed)
    programs = np.unique(data.program)
    if len(programs) > 1:
        held = np.isin(data.program, rng.permutation(programs)[:max(1, len(programs) // 10)])
    else:
        held = np.zeros(len(data), bool)
        held[rng.permutation(len(data))[:max(1, len(data) // 10)]] = True
    return (data, data) if held.all() else (data.take(~held), data.take(held))
