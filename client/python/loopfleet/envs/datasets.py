"""Data sets of benchmarks, with CompilerGym's names."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import _core
from .._core import full_uri
from ..bitcode import read_bitcode, uri_of


class Benchmark(str):
    """A benchmark's URI. One that is made of a file holds its ``bitcode``, too, and sends it to the
    coordinator at each reset of an environment: ``env.reset(benchmark=...)``, ``env.benchmark = ...``."""

    bitcode: bytes | None = None
    _given: str | None = None

    @classmethod
    def from_file(cls, uri: str, path: str | os.PathLike) -> Benchmark:
        """A file of LLVM bitcode. ``uri`` is a name of the caller's, such as "benchmark://mine-v0/square"; jobs and
        states name the program by its bytes, "bitcode://sha256/...". FileNotFoundError. ValueError: no URI, no
        bitcode, or more than 16 MiB."""
        return cls._of(uri, read_bitcode(path))

    @classmethod
    def from_file_contents(cls, uri: str, data: bytes) -> Benchmark:
        """The same of the file's bytes."""
        return cls._of(uri, read_bitcode(bytes(data)))

    @classmethod
    def _of(cls, uri: str, bitcode: bytes) -> Benchmark:
        scheme, _, rest = uri.partition("://")
        if not scheme or not rest.strip("/"):
            raise ValueError(f"'{uri}' is no URI; such as benchmark://mine-v0/square")
        benchmark = cls(uri_of(bitcode))
        benchmark.bitcode, benchmark._given = bitcode, uri
        return benchmark

    @property
    def uri(self) -> str:
        """Its URI, or the name that it was given."""
        return self._given or str(self)

    def __repr__(self) -> str:
        return str(self)


def _check(uri: str) -> Benchmark:
    uri = full_uri(uri)
    _core.Walk(benchmark=uri)  # raises JobError INVALID_BENCHMARK, with the nearest name
    return Benchmark(uri)


def random_of(random_state: random.Random | np.random.Generator | None) -> Any:
    """What to draw with: a generator of numpy's, as CompilerGym takes, seeds one of Python's."""
    if isinstance(random_state, np.random.Generator):
        return random.Random(int(random_state.integers(1 << 62)))
    return random_state or random


class Dataset:
    """A data set with ``size`` members in a fixed order; 0: uncountable."""

    def __init__(self, prefix: str, description: str, size: int, example: str):
        self.name = prefix.rstrip("/")
        self.description = description
        self.size = size
        self.example = example

    def benchmark_uris(self) -> Iterator[str]:
        return (_core.dataset_member(self.name, index) for index in range(self.size))

    def benchmarks(self) -> Iterator[Benchmark]:
        return (Benchmark(uri) for uri in self.benchmark_uris())

    def benchmark(self, uri: str) -> Benchmark:
        return _check(uri if "://" in uri else f"{self.name}/{uri}")

    def random_benchmark(self, random_state: random.Random | np.random.Generator | None = None) -> Benchmark:
        return Benchmark(_core.random_benchmark([self.name], random_of(random_state).getrandbits(63)))

    def __iter__(self) -> Iterator[Benchmark]:
        return self.benchmarks()

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return self.name


def to_draw_from(benchmarks: Any) -> Any:
    """The benchmarks of an environment, as a data set or a sequence; None: none are given. TypeError: a single one.
    ValueError: there is none."""
    if benchmarks is None or hasattr(benchmarks, "random_benchmark"):
        return benchmarks
    if isinstance(benchmarks, str):
        raise TypeError(f"benchmarks must be several, not the text '{benchmarks}': give a list or a data set, or "
                        "one as benchmark=")
    if not isinstance(benchmarks, Sequence):
        benchmarks = list(benchmarks)
    if not len(benchmarks):
        raise ValueError("benchmarks is empty: there is none to draw")
    return benchmarks


def draw(benchmarks: Any, rng: np.random.Generator) -> str:
    """One of what to_draw_from() gave."""
    if not hasattr(benchmarks, "random_benchmark"):
        return benchmarks[int(rng.integers(len(benchmarks)))]
    seed = int(rng.integers(1 << 62))
    if isinstance(benchmarks, Dataset):
        return _core.random_benchmark([benchmarks.name], seed)
    return benchmarks.random_benchmark(random.Random(seed))


def find_dataset(known: dict[str, Any], name: str) -> Any:
    """The data set of this name, with or without its scheme. LookupError: unknown, with the nearest."""
    full = name.rstrip("/") if "://" in name else f"benchmark://{name.rstrip('/')}"
    if full not in known:
        raise LookupError(f"unknown dataset '{name}'{_core.nearest(full, list(known))}; valid: {', '.join(known)}")
    return known[full]


class Datasets:
    """All data sets of one dialect."""

    def __init__(self, dialect: str):
        self._all = {}
        for row in _core.datasets():
            dataset = Dataset(*row)
            if _core.Walk(benchmark=dataset.example).dialect == dialect:
                self._all[dataset.name] = dataset

    def dataset(self, name: str) -> Dataset:
        return find_dataset(self._all, name)

    __getitem__ = dataset

    def benchmark(self, uri: str) -> Benchmark:
        return _check(uri)

    def random_benchmark(self, random_state: random.Random | np.random.Generator | None = None) -> Benchmark:
        """Of a data set that can be counted and is not for GPUs alone: ``dataset(name)`` draws from those."""
        chosen = random_of(random_state)
        countable = [d for d in self._all.values() if d.size and "-cuda-" not in d.name]
        return chosen.choice(countable).random_benchmark(chosen)

    def benchmarks(self) -> Iterator[Benchmark]:
        for dataset in self._all.values():
            yield from dataset

    def datasets(self) -> Iterator[Dataset]:
        return iter(self._all.values())

    __iter__ = datasets

    def __len__(self) -> int:
        return len(self._all)
