"""PolicyModel: a first schedule without measuring any."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._core import JobError, Walk, full_uri, nearest
from ..rows import program_of
from .cost_model import with_validation
from .errors import BadModelFile, ModelError, NotFitted, UnknownProgram
from .measured import Measured
from .model_file import check_features, options_of, read_model, write_model
from .schedule_features import FEATURE_NAMES, features
from .trees import Trees, fit_trees

_KEPT = 16         # of each program's schedules, the quickest
_CANDIDATES = 64   # tried on a new program, at most
_ROUNDS = 300      # of the judge
_LAYOUT = "agent58"


class PolicyModel:
    """Imitates the quickest schedules that a search or campaign found: replays the sequences of
    actions that were best on the programs most like the new one, and proposes the tree that
    gradient-boosted trees, fitted to the same rows, judge best. Nothing is measured.

        policy = PolicyModel().fit(read_rows("data"))
        policy.propose("mm-v0/mm128_160_224")                         # [["swap_down", "split_8", ...]]
        loopfleet.search("mm-v0/mm128_160_224", start=policy, evaluations=10)
    """

    def __init__(self, *, kept: int = _KEPT, candidates: int = _CANDIDATES, seed: int = 0, threads: int = 0):
        """``kept``: schedules remembered of each program; ``candidates``: how many are tried on a
        new one; more take longer. ``threads``: of fitting, 0 for all cores."""
        if kept < 1 or candidates < 1:
            raise ModelError(f"kept and candidates must be at least 1, not {kept} and {candidates}")
        self.kept, self.candidates, self.seed, self.threads = kept, candidates, seed, threads
        self._examples: list[dict[str, Any]] = []  # "kind", "sizes", "actions": list of lists, the quickest first
        self._judge: Trees | None = None

    def fit(self, rows: Iterable[Mapping[str, Any]] | Measured) -> PolicyModel:
        """Remembers the quickest schedules of each program of ``rows``, and fits the judge, which
        sees all. Rows as Measured.of() takes them. Returns itself."""
        whole = Measured.of(rows)
        self._examples = self._examples_of(whole)
        data, validation = with_validation(whole, None, self.seed)
        self._judge = fit_trees(data.x, data.slowness, objective="reg:absoluteerror", rounds=_ROUNDS, seed=self.seed,
                                threads=self.threads, validation=(validation.x, validation.slowness))
        return self

    def _examples_of(self, data: Measured) -> list[dict[str, Any]]:
        found = []
        for places in data.places_by_program():
            best, seen = [], set()
            for place in places[np.argsort(data.elapsed_ns[places], kind="stable")]:
                if data.tree_key[place] in seen or not _is_structural(data, place):
                    continue
                seen.add(data.tree_key[place])
                best.append(data.actions[place])
                if len(best) == self.kept:
                    break
            if best:
                kind, sizes = _kind_and_sizes(data.benchmark[places[0]], data.ir[places[0]])
                found.append({"kind": kind, "sizes": sizes, "actions": best})
        return found

    def propose(self, benchmark: str | None = None, count: int = 1, *, ir: str | None = None) -> list[list[str]]:
        """Up to ``count`` lists of legal actions (rules "structural") that lead to different trees,
        the best first. UnknownProgram: the policy has seen no program with these operations;
        NotFitted; JobError: a bad benchmark."""
        if self._judge is None:
            raise NotFitted("this PolicyModel has learnt nothing yet: call fit(rows) or PolicyModel.load(path)")
        benchmark = full_uri(benchmark) if benchmark else None
        walk = Walk(benchmark=benchmark or "", ir=ir or "", features=_LAYOUT)
        kind, sizes = _kind_and_sizes(benchmark, ir)
        alike = [example for example in self._examples if example["kind"] == kind]
        if not alike:
            known = sorted({example["kind"] for example in self._examples})
            raise UnknownProgram(f"the policy has seen no program with the operations {kind}{nearest(kind, known)}; "
                                 f"it knows {', '.join(known)}", known)
        here = np.array(sizes)
        alike.sort(key=lambda example: float(np.abs(np.array(example["sizes"]) - here).sum()))
        walks = self._trees(walk, alike)
        order = np.argsort(self._judge.predict(features(walks)), kind="stable")
        return [walks[place].history for place in order[:count]]

    def _trees(self, start: Walk, examples: list[dict[str, Any]]) -> list[Walk]:
        """Different trees: the untuned one, then the best of all examples, the nearest first, then
        the second best."""
        walks, seen = [start.copy()], {start.tree_key}
        for rank in range(self.kept):
            for example in examples:
                if rank >= len(example["actions"]):
                    continue
                walk = start.copy()
                for name in example["actions"][rank]:
                    walk.apply(name)
                if (key := walk.tree_key) in seen:
                    continue
                seen.add(key)
                walks.append(walk)
                if len(walks) == self.candidates:
                    return walks
        return walks

    def scores(self, data: Measured) -> np.ndarray:
        """float64[rows]: by what propose() orders its candidates, the higher the better; NaN where it
        has seen no program with these operations. NotFitted."""
        if self._judge is None:
            raise NotFitted("this PolicyModel has learnt nothing yet: call fit(rows) or PolicyModel.load(path)")
        known = {example["kind"] for example in self._examples}
        found = -self._judge.predict(data.x)
        for places in data.places_by_program():
            if _kind_and_sizes(data.benchmark[places[0]], data.ir[places[0]])[0] not in known:
                found[places] = np.nan
        return found

    def start_for(self, benchmark: str | None, ir: str | None) -> list[list[str]]:
        """What loopfleet.search measures first: four proposals."""
        return self.propose(benchmark, 4, ir=ir)

    def save(self, path: str | Path) -> None:
        """Writes one file (.npz). NotFitted."""
        if self._judge is None:
            raise NotFitted("this PolicyModel has learnt nothing yet: there is nothing to save")
        examples = np.frombuffer(json.dumps(self._examples).encode(), np.uint8)
        write_model(path, "PolicyModel", {"kept": self.kept, "candidates": self.candidates, "seed": self.seed,
                                          "features": FEATURE_NAMES},
                    {**self._judge.to_arrays("judge"), "examples": examples})

    @classmethod
    def load(cls, path: str | Path) -> PolicyModel:
        """Reads a file of save(), and runs none of it. BadModelFile."""
        facts, arrays = read_model(path, "PolicyModel")
        check_features(path, facts, FEATURE_NAMES)
        try:
            model = cls(kept=int(facts["kept"]), candidates=int(facts["candidates"]),
                        **options_of(facts, int, "seed"))
            model._examples = [_checked(example) for example in json.loads(arrays["examples"].tobytes())]
            model._judge = Trees.of_arrays(arrays, "judge", len(FEATURE_NAMES))
        except (KeyError, TypeError, ValueError, ModelError) as error:
            raise BadModelFile(f"{path} is damaged: {error}") from error
        return model


def _checked(example: dict[str, Any]) -> dict[str, Any]:
    """KeyError, TypeError or ValueError: it is no example of a model's file."""
    return {"kind": str(example["kind"]), "sizes": [float(size) for size in example["sizes"]],
            "actions": [[str(name) for name in actions] for actions in example["actions"]]}


def _kind_and_sizes(benchmark: str | None, ir: str | None) -> tuple[str, list[float]]:
    """The program's operations, with its number of dimensions; log2 of the dimensions' sizes,
    by their names."""
    _, region = program_of(benchmark, ir)
    if region is None:
        Walk(benchmark=benchmark or "", ir=ir or "")  # raises what is wrong
    operations, _, dims = region.partition(":")
    sizes = [float(np.log2(size)) for size in _dims_of(benchmark, ir)]
    return f"{operations}/{len(dims.split(','))}", sizes


def _dims_of(benchmark: str | None, ir: str | None) -> list[int]:
    """Sizes of the program's dimensions by name."""
    form = Walk(benchmark=benchmark or "", ir=ir or "").canonical_form
    sizes: dict[str, int] = {}
    for line in form.splitlines()[1:]:
        if line.startswith("in "):
            break
        for dim in line[line.index("[") + 1:line.index("]")].split():
            name, size = dim.split("=")
            sizes[name] = int(size)
    return [sizes[name] for name in sorted(sizes)]


def _is_structural(data: Measured, place: int) -> bool:
    """Whether the actions lead to the tree from the first tree, under the rules that propose()
    uses."""
    walk = Walk(benchmark=data.benchmark[place] or "", ir=data.ir[place] or "")
    for name in data.actions[place]:
        try:
            walk.apply(name)
        except JobError:
            return False
    return walk.tree_key.hex() == data.tree_key[place]
