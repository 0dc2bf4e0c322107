"""Files of schedules: JSON lines, one for each program, with its tree as IR text."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

from ._core import LoopTree
from .errors import ScheduleError
from .whole_file import write_whole

Row = dict[str, Any]


def row_of(tree: LoopTree, gflops: float | None) -> Row:
    return {"program_key": tree.program_key, "ir": tree.serialize(), "tree_key": tree.tree_key, "gflops": gflops,
            "host": platform.node()}


def read_rows(path: str | os.PathLike) -> list[Row]:
    """OSError: it cannot be read. ScheduleError: a line is no schedule."""
    rows = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            is_its_program = LoopTree(row["ir"]).program_key == row["program_key"]
        except (ValueError, KeyError, TypeError) as error:
            raise ScheduleError(f"{path}, line {number}: no schedule: {error!r}") from None
        if not is_its_program:
            raise ScheduleError(f"{path}, line {number}: the tree is not of program {row['program_key']}")
        rows.append(row)
    return rows


def write_rows(path: str | os.PathLike, rows: list[Row]) -> None:
    """A reader sees the old file or the new one. OSError: it cannot be written."""
    write_whole(path, "".join(json.dumps(row) + "\n" for row in rows))


def put_schedule(path: str | os.PathLike, tree: LoopTree, gflops: float | None) -> None:
    """In place of the one of the same program; lines of other programs stay."""
    rows = read_rows(path) if Path(path).exists() else []
    others = [row for row in rows if row["program_key"] != tree.program_key]
    write_rows(path, [*others, row_of(tree, gflops)])


def find_schedule(path: str | os.PathLike, program_key: str) -> LoopTree | None:
    """The tree of this program; None: there is none."""
    for row in read_rows(path):
        if row["program_key"] == program_key:
            return LoopTree(row["ir"])
    return None
