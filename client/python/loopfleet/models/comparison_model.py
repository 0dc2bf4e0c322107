"""ComparisonModel: says which of two schedules of a program is faster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .cost_model import check_kind, with_validation
from .errors import BadModelFile, MissingPackage, ModelError, NotFitted, need
from .measured import Measured
from .model_file import check_features, options_of, read_model, write_model
from .network import ScoreNetwork
from .schedule_features import FEATURE_NAMES, Schedule, features
from .trees import Trees, fit_trees

_PAIRS = 40_000  # drawn to fit a network


class ComparisonModel:
    """Bradley and Terry's model: each schedule has a score, and the logistic function of the
    difference of two is the chance that the first is faster. Scores are a network's, fitted by the
    logistic loss of pairs (``kind="network"``), or those of a CostModel's trees (``kind="trees"``).
    They have no unit, and compare schedules of one program only."""

    def __init__(self, kind: str = "trees", *, rounds: int = 600, epochs: int = 15, seed: int = 0, threads: int = 0):
        """As CostModel's."""
        check_kind(kind)
        self.kind, self.rounds, self.epochs, self.seed, self.threads = kind, rounds, epochs, seed, threads
        self._fitted: Any = None  # Trees or a ScoreNetwork
        self._scale = 1.0  # of scores, so that their difference is log-odds

    def fit(self, rows: Iterable[Mapping[str, Any]] | Measured,
            validation: Iterable[Mapping[str, Any]] | Measured | None = None) -> ComparisonModel:
        """As CostModel.fit(). ModelError: no two schedules of a program differ by more than 5 %."""
        data, judge = with_validation(rows, validation, self.seed)
        rng = np.random.default_rng(self.seed)
        pairs = data.pairs(_PAIRS, rng)
        # Its own pairs, if the validation part has none.
        judge = judge if _has_pairs(judge) else data
        judges = judge.pairs(_PAIRS // 2, np.random.default_rng(self.seed + 1))
        if self.kind == "trees":
            self._fitted = fit_trees(data.x, -data.slowness, objective="reg:absoluteerror", rounds=self.rounds,
                                     seed=self.seed, threads=self.threads, validation=(judge.x, -judge.slowness))
        else:
            torch = need("torch", "models,torch")
            network = ScoreNetwork.for_features(data.x, self.seed)
            x = network.scaled(data.x)
            first, second = map(torch.from_numpy, pairs)
            faster = torch.from_numpy(data.elapsed_ns[pairs[0]] < data.elapsed_ns[pairs[1]]).float()

            def loss_of(part: Any) -> Any:
                difference = network.call(x[first[part]]) - network.call(x[second[part]])
                return torch.nn.functional.binary_cross_entropy_with_logits(difference, faster[part])

            network.fit(len(first), loss_of, self.epochs, self.seed,
                        lambda: 1 - pairwise_accuracy(judge, network.predict(judge.x), judges))
            self._fitted = network
        self._scale = _calibrated(judge, self.scores(judge.x), judges)
        return self

    def predict(self, first: Iterable[Schedule], second: Iterable[Schedule]) -> np.ndarray:
        """float64[pairs]: the chance, from 0 to 1, that a schedule of ``first`` is faster than the
        one at its place in ``second``. ModelError: they are not equally many."""
        first, second = list(first), list(second)
        if len(first) != len(second):
            raise ModelError(f"there are {len(first)} first schedules and {len(second)} second ones: give pairs")
        difference = self.scores(features(first)) - self.scores(features(second))
        return 1 / (1 + np.exp(-difference * self._scale))

    def scores(self, x: np.ndarray) -> np.ndarray:
        """float64[rows], the higher the faster, for features float32[rows, features]. NotFitted."""
        if self._fitted is None:
            raise NotFitted("this ComparisonModel has learnt nothing yet: call fit(rows) or ComparisonModel.load(path)")
        found = self._fitted.predict(x)
        return found.astype(np.float64)

    def scorer_for(self, benchmark: str | None, ir: str | None) -> Any:
        """What loopfleet.search asks which schedules to measure. Learns nothing from its figures."""
        def score(schedules: list[list[str]]) -> list[float]:
            rows = [{"benchmark": benchmark, "ir": ir, "actions": actions} for actions in schedules]
            return (-self.scores(features(rows))).tolist()
        return score

    def save(self, path: str | Path) -> None:
        """Writes one file (.npz). NotFitted."""
        if self._fitted is None:
            raise NotFitted("this ComparisonModel has learnt nothing yet: there is nothing to save")
        arrays = self._fitted.to_arrays("trees") if self.kind == "trees" else self._fitted.to_arrays()
        facts = {"model": self.kind, "scale": self._scale, "features": FEATURE_NAMES,
                 "rounds": self.rounds, "epochs": self.epochs, "seed": self.seed}
        write_model(path, "ComparisonModel", facts, arrays)

    @classmethod
    def load(cls, path: str | Path) -> ComparisonModel:
        """Reads a file of save(), and runs none of it. BadModelFile."""
        facts, arrays = read_model(path, "ComparisonModel")
        check_features(path, facts, FEATURE_NAMES)
        try:
            model = cls(facts["model"], **options_of(facts, int, "rounds", "epochs", "seed"))
            model._scale = float(facts["scale"])
            model._fitted = (Trees.of_arrays(arrays, "trees", len(FEATURE_NAMES)) if model.kind == "trees" else
                             ScoreNetwork.of_arrays(arrays))
        except MissingPackage:
            raise
        except (KeyError, TypeError, ValueError, RuntimeError, ModelError) as error:
            raise BadModelFile(f"{path} is damaged: {error}") from error
        return model


def pairwise_accuracy(data: Measured, scores: np.ndarray, pairs: tuple[np.ndarray, np.ndarray]) -> float:
    """Share of the pairs whose faster schedule has the higher score; pairs without scores are left
    out. NaN: all are."""
    first, second = pairs
    known = np.isfinite(scores[first]) & np.isfinite(scores[second])
    first, second = first[known], second[known]
    if not len(first):
        return float("nan")
    return float(np.mean((scores[first] > scores[second]) == (data.elapsed_ns[first] < data.elapsed_ns[second])))


def _has_pairs(data: Measured) -> bool:
    try:
        data.pairs(1, np.random.default_rng(0))
        return True
    except ModelError:
        return False


def _calibrated(data: Measured, scores: np.ndarray, pairs: tuple[np.ndarray, np.ndarray]) -> float:
    """The factor of scores under which their differences are best as log-odds."""
    first, second = pairs
    difference = (scores[first] - scores[second]) * np.where(data.elapsed_ns[first] < data.elapsed_ns[second], 1, -1)
    factors = np.exp(np.linspace(np.log(0.05), np.log(20), 61))
    losses = [float(np.mean(np.logaddexp(0, -factor * difference))) for factor in factors]
    return float(factors[int(np.argmin(losses))])
