"""Measured: what models are fitted to and judged by, from rows of measurements."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._core import JobError, counted, nearest
from ..rows import program_of
from ..splits import PARTS
from .errors import ModelError, need
from .schedule_features import features, plain_row, walk_of

GRADES = ("A", "B", "C")  # whose figures are used
CONDITIONS = ("hardware_class", "threads", "cache")  # figures of different ones are not compared
_COLUMNS = ("benchmark", "ir", "actions", "tree_key", "program", "region", "status", "grade", "suspect",
            "flop_count", "elapsed_ns", *CONDITIONS)


@dataclass(frozen=True)
class Measured:
    """Schedules with a trusted figure; all fields have one entry for each, in the rows' order."""

    x: np.ndarray            # float32[rows, features]
    elapsed_ns: np.ndarray   # float64[rows], of one run
    flop_count: np.ndarray   # float64[rows], of one run
    program: np.ndarray      # text[rows], equal for equal programs
    region: np.ndarray       # text[rows]
    tree_key: np.ndarray     # text[rows], hexadecimal
    benchmark: list[str | None]
    ir: list[str | None]
    actions: list[list[str]]  # as applied

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]] | Measured, *, use_suspect: bool = False) -> Measured:
        """From rows of a data set (loopfleet.rows.FIELDS), or any dicts with ``benchmark`` or
        ``ir``, ``actions`` and ``elapsed_ns``.

        Uses rows that are measured ("ok", or without a ``status``), of grade A, B or C if they
        have one, and not suspect (but with ``use_suspect``: a busy host's are all). A warning tells
        how many trees could not be rebuilt. ModelError: no row is left, it lacks a field, or the rows
        are of several hardware classes, numbers of threads or cache states.
        A Measured is given back as it is.
        """
        if isinstance(rows, Measured):
            return rows
        used, walks, left_out, why = [], [], 0, ""
        refused: Counter[str] = Counter()
        for row in map(plain_row, rows):
            if reason := _why_not(row, use_suspect):
                refused[reason] += 1
                continue
            try:
                walks.append(walk_of(row))
                used.append(row)
            except JobError as error:
                left_out += 1
                why = str(error)
        if left_out:
            warnings.warn(f"{counted(left_out, 'row', 'rows')} left out; the last one: {why}", stacklevel=2)
        if not used:
            told = ", ".join(f"{count:,} {reason}" for reason, count in refused.most_common()) or "there are none"
            raise ModelError(f"none of the rows has a figure that may be trusted: {told}")
        need_one_condition(used)
        known = [(row["program"], row["region"]) if row.get("program") and row.get("region") else
                 program_of(row.get("benchmark"), row.get("ir")) for row in used]
        return cls(features(walks), np.array([row["elapsed_ns"] for row in used], np.float64),
                   np.array([walk.flop_count for walk in walks], np.float64),
                   np.array([program for program, _ in known]), np.array([region for _, region in known]),
                   np.array([walk.tree_key.hex() for walk in walks]), [row.get("benchmark") for row in used],
                   [row.get("ir") for row in used], [walk.history for walk in walks])

    def __len__(self) -> int:
        return len(self.elapsed_ns)

    def take(self, places: np.ndarray | Sequence[int]) -> Measured:
        """The rows at these places, or where a mask is true."""
        places = np.asarray(places)
        if places.dtype == bool:
            places = np.flatnonzero(places)
        arrays = (getattr(self, name)[places] for name in ("x", "elapsed_ns", "flop_count", "program", "region",
                                                           "tree_key"))
        lists = ([getattr(self, name)[place] for place in places] for name in ("benchmark", "ir", "actions"))
        return Measured(*arrays, *lists)

    @property
    def log_ns_per_flop(self) -> np.ndarray:
        """float64[rows]: log2 of the nanoseconds that one floating-point operation takes."""
        return np.log2(self.elapsed_ns / np.maximum(self.flop_count, 1))

    @property
    def slowness(self) -> np.ndarray:
        """float64[rows]: log2 of the time over the quickest of the program's rows; at least 0."""
        slowness = np.log2(self.elapsed_ns)
        for places in self.places_by_program():
            slowness[places] -= slowness[places].min()
        return slowness

    def places_by_program(self) -> Iterator[np.ndarray]:
        """The places of each program's rows."""
        order = np.argsort(self.program, kind="stable")
        _, starts = np.unique(self.program[order], return_index=True)
        yield from np.split(order, starts[1:])

    def pairs(self, most: int, rng: np.random.Generator, gap: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
        """Places of up to ``most`` random pairs of one program, in random order, whose times differ
        by more than the share ``gap`` of noise."""
        first, second = [], []
        log_ns = np.log(self.elapsed_ns)
        for places in self.places_by_program():
            a, b = rng.choice(places, (2, 20 * len(places)))
            keep = np.abs(log_ns[a] - log_ns[b]) > np.log1p(gap)
            first.append(a[keep])
            second.append(b[keep])
        if not sum(map(len, first)):
            raise ModelError(f"no two schedules of one program differ by more than {gap:.0%}: there is nothing to "
                             "compare")
        kept = rng.permutation(sum(map(len, first)))[:most]
        return np.concatenate(first)[kept], np.concatenate(second)[kept]


def _why_not(row: Mapping[str, Any], use_suspect: bool) -> str:
    """Why the row's figure is not used; "": it is."""
    for name in ("actions", "elapsed_ns"):
        if name not in row:
            raise ModelError(f"a row has no '{name}'; it has {', '.join(map(str, row))}")
    if row.get("status", "ok") != "ok":
        return f"with status {row['status']}"
    if row["elapsed_ns"] is None or not 0 < row["elapsed_ns"] < math.inf:  # NaN is what pandas makes of None
        return "without elapsed_ns"
    if row.get("suspect") and not use_suspect:
        return "suspect (use_suspect, --suspect takes them)"
    grade = row.get("grade", "A")
    return "" if grade in GRADES else f"of grade {grade}"


def need_one_condition(rows: Iterable[Mapping[str, Any]]) -> None:
    """ModelError: the rows were measured under several CONDITIONS. Rows that lack them are of one unknown."""
    counts = Counter(tuple(_told(row.get(name)) for name in CONDITIONS) for row in rows)
    if len(counts) < 2:
        return
    told = "; ".join(", ".join(f"{name}={value!r}" for name, value in zip(CONDITIONS, values) if value is not None)
                     + f" ({count:,})" for values, count in counts.most_common())
    raise ModelError("figures of different conditions are not compared; choose one (read_rows(..., hardware_class=...), "
                     f"--hardware-class): {told}")


def _told(value: Any) -> Any:
    return None if value != value else value  # NaN is what pandas makes of None


def read_rows(path: str | Path, **conditions: Any) -> list[dict[str, Any]]:
    """Rows of a Parquet file, or of all parts of an exported data set. ``conditions``, by the names in
    CONDITIONS: only rows of these, such as ``threads=1``. ModelError: there is no file, or it lacks a
    column."""
    for name in conditions:
        if name not in CONDITIONS:
            raise ModelError(f"rows are not chosen by '{name}'{nearest(name, list(CONDITIONS))}; valid: "
                             f"{', '.join(CONDITIONS)}")
    need("pyarrow", "models")
    import pyarrow as pa
    import pyarrow.parquet as pq
    path = Path(path)
    files = [path / "data" / f"{part}.parquet" for part in PARTS] if path.is_dir() else [path]
    rows: list[dict[str, Any]] = []
    for file in files:
        try:
            names = pq.read_schema(file).names
            if lacking := {"actions", "elapsed_ns", "benchmark", *conditions} - set(names):
                raise ModelError(f"{file} has no column {', '.join(sorted(lacking))}: is it an export of loopfleet?")
            rows += pq.read_table(file, columns=[name for name in names if name in _COLUMNS]).to_pylist()
        except (OSError, pa.ArrowInvalid) as error:
            raise ModelError(f"{file} is no Parquet file that can be read: {error}") from error
    return [row for row in rows if all(row[name] == value for name, value in conditions.items())]
