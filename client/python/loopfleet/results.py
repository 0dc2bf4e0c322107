"""ResultBatch: many outcomes as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np

from . import _core
from ._core import Outcome

FAILURE_NAMES: dict[int, str] = {number: name for number, name, _, _ in _core.failure_codes()}
FAILURE_NUMBERS: dict[str, int] = {name: number for number, name in FAILURE_NAMES.items()}
RETRYABLE = frozenset(name for _, name, retryable, _ in _core.failure_codes() if retryable)
GRADES = ("A", "B", "C", "D")
SOURCES = ("measured", "stored", "coalesced", "same_code")


class _Column:
    """An array made by C++, without a copy."""

    def __init__(self, doc: str):
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, batch: None, owner: type) -> _Column: ...

    @overload
    def __get__(self, batch: ResultBatch, owner: type) -> np.ndarray: ...

    def __get__(self, batch: ResultBatch | None, owner: type | None = None) -> Any:
        return self if batch is None else batch.columns[self._name]


class ResultBatch(Sequence):
    """Outcomes in the order of their jobs. Figures of failed rows are NaN.

    Columns are NumPy arrays with one entry per row; ``samples_ns`` and ``sample_flags`` are
    concatenated, row i at ``sample_offsets[i]:sample_offsets[i + 1]``.
    """

    status = _Column("uint16: 0 is measured, else the failure's number (FAILURE_NAMES).")
    gflops = _Column("float64, 10^9 operations per second.")
    elapsed_ns = _Column("float64, median of one run in nanoseconds.")
    elapsed_low_ns = _Column("float64, lower end of the interval round the median.")
    elapsed_high_ns = _Column("float64, upper end of it.")
    elapsed_min_ns = _Column("float64")
    elapsed_mean_ns = _Column("float64")
    spread = _Column("float64, relative half-width of that interval.")
    grade = _Column("uint8: index into GRADES; 255 of a failed row.")
    flop_count = _Column("uint64, operations of one run; 0 where not known.")
    samples_ns = _Column("float64, of all rows, end to end.")
    sample_flags = _Column("uint8, of each sample: bit 0 contended, bit 1 preempted, bit 2 throttled, bit 3 apart.")
    sample_offsets = _Column("int64, rows + 1.")
    tree_key = _Column("uint8, rows x 16; zeros where not known.")
    source = _Column("uint8: index into SOURCES.")
    attempts = _Column("uint32, times the job was leased.")
    peak_gflops = _Column("float64, the device's measured peak, of one thread; not-a-number where not known.")

    def __init__(self, outcomes: Sequence[Outcome]):
        self.outcomes = list(outcomes)

    @cached_property
    def columns(self) -> dict[str, Any]:
        """Every column by name; repeated texts are (codes, texts)."""
        return {"index": np.arange(len(self), dtype=np.uint32), **_core.columns(self.outcomes)}

    def __len__(self) -> int:
        return len(self.outcomes)

    def __getitem__(self, place: Any) -> Any:
        got = self.outcomes[place]
        return ResultBatch(got) if isinstance(place, slice) else got

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    @property
    def ok(self) -> np.ndarray:
        """bool: the row has a figure."""
        return self.status == 0

    @property
    def worker(self) -> np.ndarray:
        """Names of the workers that measured; "": none."""
        return self._texts("worker")

    @property
    def benchmark(self) -> np.ndarray:
        return self._texts("benchmark")

    @property
    def status_names(self) -> np.ndarray:
        """"ok" or the failure's code."""
        return np.array([outcome.status for outcome in self.outcomes], dtype=object)

    @property
    def grade_names(self) -> np.ndarray:
        """"A" to "D"; "" of a failed row."""
        return np.array([outcome.grade for outcome in self.outcomes], dtype=object)

    @property
    def source_names(self) -> np.ndarray:
        """"measured", "same_code", "stored" or "coalesced"."""
        return np.array([outcome.source for outcome in self.outcomes], dtype=object)

    def samples_of(self, row: int) -> np.ndarray:
        """The samples of one row, in nanoseconds; a view."""
        return self.samples_ns[self.sample_offsets[row]:self.sample_offsets[row + 1]]

    def _texts(self, name: str) -> np.ndarray:
        codes, texts = self.columns[name]
        return np.array(texts, dtype=object)[codes]

    def _names(self) -> dict[str, np.ndarray]:
        """What tables have instead of the numbers of these columns."""
        return {"status": self.status_names, "grade": self.grade_names, "source": self.source_names}

    def to_dicts(self) -> list[dict[str, Any]]:
        """The JSON values of `loopfleet eval --json`."""
        return [outcome.to_dict() for outcome in self.outcomes]

    def to_arrow(self) -> Any:
        """A pyarrow.Table; numbers and samples share the columns' memory."""
        import pyarrow as pa

        columns = self.columns
        arrays: dict[str, Any] = {}
        for name, column in columns.items():
            if isinstance(column, tuple):
                arrays[name] = pa.DictionaryArray.from_arrays(pa.array(column[0]), pa.array(column[1], pa.string()))
            elif name in ("samples_ns", "sample_flags"):
                offsets = pa.array(columns["sample_offsets"].astype(np.int32))
                arrays[name] = pa.ListArray.from_arrays(offsets, pa.array(column))
            elif name == "tree_key":
                arrays[name] = pa.FixedSizeBinaryArray.from_buffers(
                    pa.binary(16), len(self), [None, pa.py_buffer(np.ascontiguousarray(column))])
            elif name != "sample_offsets":
                arrays[name] = pa.array(column)
        for name, texts in self._names().items():
            arrays[name] = pa.array(texts, pa.string())
        arrays["message"] = pa.array([outcome.message for outcome in self.outcomes], pa.string())
        arrays["actions"] = pa.array([outcome.actions for outcome in self.outcomes], pa.list_(pa.string()))
        return pa.table(arrays)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame; ``samples_ns`` holds an array in each row."""
        import pandas as pd

        columns = self.columns
        data: dict[str, Any] = {"benchmark": self.benchmark, "actions": [o.actions for o in self.outcomes]}
        for name, column in columns.items():
            if isinstance(column, tuple):
                data[name] = pd.Categorical.from_codes(column[0], list(column[1]))
            elif name not in ("samples_ns", "sample_flags", "sample_offsets", "tree_key"):
                data[name] = column
        data.update(self._names())
        data["message"] = [outcome.message for outcome in self.outcomes]
        data["tree_key"] = [outcome.tree_key for outcome in self.outcomes]
        data["samples_ns"] = [self.samples_of(row) for row in range(len(self))]
        return pd.DataFrame(data)

    def __repr__(self) -> str:
        good = int(self.ok.sum())
        timed = self.gflops[~np.isnan(self.gflops)]
        best = f", best {timed.max():.4g} GFLOP/s" if len(timed) else ""
        return f"<ResultBatch of {len(self)}: {good} measured, {len(self) - good} failed{best}>"
