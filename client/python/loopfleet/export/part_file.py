"""Writers of rows into one file: Parquet, JSON lines or CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from ..errors import LoopfleetError, installing
from ..rows import FIELDS, Row

# Columns, in rows of a followed export also whose and in which part they are.
MEANINGS = {**FIELDS, "coordinator": "incarnation of the database that the row comes from: (coordinator, batch, index) is "
                                     "there once",
            "part": "train, validation or test, by the split"}


class Writer(Protocol):
    def write(self, rows: list[Row]) -> None: ...
    def close(self) -> None: ...


class JsonLines:
    def __init__(self, path: Path, columns: list[str]):
        self._file = path.open("w", encoding="utf-8")

    def write(self, rows: list[Row]) -> None:
        self._file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)

    def close(self) -> None:
        self._file.close()


class Csv:
    """Writes lists as JSON text."""

    def __init__(self, path: Path, columns: list[str]):
        self._file = path.open("w", encoding="utf-8", newline="")
        self._writer = csv.DictWriter(self._file, columns, lineterminator="\n")
        self._writer.writeheader()

    def write(self, rows: list[Row]) -> None:
        for row in rows:
            self._writer.writerow({key: json.dumps(value, separators=(",", ":")) if isinstance(value, list) else value
                                   for key, value in row.items()})

    def close(self) -> None:
        self._file.close()


class Parquet:
    def __init__(self, path: Path, columns: list[str]):
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise LoopfleetError(f"writing Parquet needs the Python package 'pyarrow': {installing('dataset')}; or "
                                 "--format jsonl") from None
        self._pa = pa
        self._schema = arrow_schema(columns)
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")

    def write(self, rows: list[Row]) -> None:
        columns = [self._pa.array([row[field.name] for row in rows], field.type) for field in self._schema]
        self._writer.write_table(self._pa.table(columns, schema=self._schema))  # half the time of Table.from_pylist

    def close(self) -> None:
        self._writer.close()


def arrow_schema(columns: Iterable[str] = tuple(FIELDS)) -> Any:
    """The pyarrow schema of the columns."""
    import pyarrow as pa
    whole = {"flop_count", "scratch_bytes", "iterations_per_sample", "batch"}
    small = {"action_index", "threads", "attempts", "index", "samples_before_thinning"}
    figures = {"spread"} | {name for name in FIELDS if name.endswith(("_ns", "_mhz", "gflops"))} - {"samples_ns"}
    types = {"actions": pa.list_(pa.string()), "samples_ns": pa.list_(pa.float64()),
             "sample_flags": pa.list_(pa.uint8())}
    types.update({name: pa.int64() for name in whole}, **{name: pa.int32() for name in small},
                 **{name: pa.float64() for name in figures})
    return pa.schema([pa.field(name, types.get(name, pa.string()), metadata={"doc": MEANINGS[name]})
                      for name in columns])


WRITERS: dict[str, Callable[[Path, list[str]], Writer]] = {"parquet": Parquet, "jsonl": JsonLines, "csv": Csv}
