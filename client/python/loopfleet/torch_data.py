"""An exported data set for torch: padded features of each schedule, and its figures."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from ._core import JobError, counted
from .rows import rebuild
from .splits import PARTS


class ScheduleDataset(Dataset):
    """The measured rows of one part of an export (Parquet) whose figures are trusted (not
    ``suspect``, if the export has that column).

    An item is a dict: ``loops`` float32[max_loops, width] padded with zeros, ``mask``
    bool[max_loops] true for real rows, ``strides`` float32[16 or 32], ``flop_count``,
    ``elapsed_ns``, ``gflops`` float32, and ``program`` (an integer, equal for equal programs).
    Trees with more loops are cut to ``max_loops``. Trees are rebuilt from benchmark and actions,
    as in the workers; ``left_out`` counts the rows whose tree this version cannot rebuild, and a
    warning reports them.
    """

    def __init__(self, folder: str | Path, part: str = "train", *, features: str = "agent58",
                 max_loops: int = 20, grades: Sequence[str] = ("A", "B", "C")):
        import pyarrow.parquet as pq
        if part not in PARTS:
            raise ValueError(f"unknown part '{part}'; valid: {', '.join(PARTS)}")
        path = Path(folder) / "data" / f"{part}.parquet"
        wanted = ("benchmark", "ir", "actions", "tree_key", "program", "status", "grade", "suspect", "flop_count",
                  "elapsed_ns", "gflops")
        table = pq.read_table(path, columns=[name for name in pq.read_schema(path).names if name in wanted])
        measured = [row for row in table.to_pylist() if row["status"] == "ok" and not row.get("suspect") and row["grade"] in grades]
        rows, walks, why = [], [], ""
        for row in measured:
            try:
                walks.append(rebuild(row, features))
                rows.append(row)
            except JobError as error:
                why = str(error)
        self.left_out = len(measured) - len(rows)
        if self.left_out:
            warnings.warn(f"{path}: {self.left_out} of {counted(len(measured), 'row', 'rows')} left out; the last one: {why}",
                          stacklevel=2)
        width = 58 if features == "agent58" else 20
        programs = {name: number for number, name in enumerate(sorted({row["program"] for row in rows}))}
        self.loops = np.zeros((len(rows), max_loops, width), np.float32)
        self.mask = np.zeros((len(rows), max_loops), bool)
        self.strides = np.zeros((len(rows), 32 if features == "agent58" else 16), np.float32)
        self.program = np.array([programs[row["program"]] for row in rows], np.int64)
        self.figures = np.array([[row["flop_count"], row["elapsed_ns"], row["gflops"]] for row in rows],
                                np.float32).reshape(-1, 3)
        for number, walk in enumerate(walks):
            self.loops[number] = walk.loops_tensor(max_loops).reshape(max_loops, width)
            count = min(max_loops, len(walk.observe("loops_tensor")))
            self.mask[number, :count] = True
            self.strides[number] = walk.observe("stride_tensor")

    def __len__(self) -> int:
        return len(self.program)

    def __getitem__(self, number: int) -> dict[str, Any]:
        return {"loops": torch.from_numpy(self.loops[number]), "mask": torch.from_numpy(self.mask[number]),
                "strides": torch.from_numpy(self.strides[number]), "program": int(self.program[number]),
                "flop_count": self.figures[number, 0], "elapsed_ns": self.figures[number, 1],
                "gflops": self.figures[number, 2]}
