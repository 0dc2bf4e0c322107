"""The programs that LLVM passes run on, as data sets with CompilerGym's names."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

import numpy as np

from .. import _core
from .._core import full_uri
from .datasets import Benchmark, find_dataset, random_of

_SEEDS = range(1 << 32)


class ProgramDataset:
    """A data set of programs in a fixed order; those of generators are named by their seed."""

    def __init__(self, name: str, description: str, members: Sequence):
        self.name = name
        self.description = description
        self.size = len(members)
        self._members = members

    def benchmark_uris(self) -> Iterator[str]:
        return (f"{self.name}/{member}" for member in self._members)

    def benchmarks(self) -> Iterator[Benchmark]:
        return (Benchmark(uri) for uri in self.benchmark_uris())

    def benchmark(self, uri: str) -> Benchmark:
        """By its URI, or by its name in this data set. LookupError: there is none."""
        member = full_uri(uri).removeprefix(f"{self.name}/")
        if member not in map(str, self._members) if self.size < 1000 else not _is_seed(member):
            nearest = "" if self.size >= 1000 else _core.nearest(member, list(self._members))
            raise LookupError(f"{self.name} has no program '{member}'{nearest}")
        return Benchmark(f"{self.name}/{member}")

    def random_benchmark(self, random_state: random.Random | np.random.Generator | None = None) -> Benchmark:
        return Benchmark(f"{self.name}/{random_of(random_state).choice(self._members)}")

    __iter__ = benchmarks

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return self.name


def _is_seed(text: str) -> bool:
    return text.isascii() and text.isdigit() and str(int(text)) == text and int(text) in _SEEDS


class ProgramDatasets:
    """All data sets of programs."""

    def __init__(self) -> None:
        self._all = {dataset.name: dataset for dataset in (
            ProgramDataset("generator://csmith-v0", "C programs that Csmith makes", _SEEDS),
            ProgramDataset("generator://llvm-stress-v0", "modules that llvm-stress makes", _SEEDS),
            ProgramDataset("benchmark://small-v0", "small C programs", _core.pass_programs("small-v0")),
            ProgramDataset("benchmark://debian-v0", "programs of Debian's source packages",
                           _core.pass_programs("debian-v0")))}

    def dataset(self, name: str) -> ProgramDataset:
        return find_dataset(self._all, name)

    __getitem__ = dataset

    def benchmark(self, uri: str) -> Benchmark:
        return self.dataset(uri.rpartition("/")[0]).benchmark(uri)

    def random_benchmark(self, random_state: random.Random | np.random.Generator | None = None) -> Benchmark:
        """Of a data set that is drawn first."""
        chosen = random_of(random_state)
        return chosen.choice(list(self._all.values())).random_benchmark(chosen)

    def benchmarks(self) -> Iterator[Benchmark]:
        """One of each data set in turn: a generator's end is never reached."""
        for turn in itertools.zip_longest(*self._all.values()):
            yield from (each for each in turn if each is not None)

    def datasets(self) -> Iterator[ProgramDataset]:
        return iter(self._all.values())

    __iter__ = datasets

    def __len__(self) -> int:
        return len(self._all)
