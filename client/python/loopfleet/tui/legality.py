"""Legality: what may be done at a line of a tree, and why the rest may not."""

from __future__ import annotations

from dataclasses import dataclass

from .._core import LoopTree
from ..errors import ScheduleError
from . import edits
from .edits import Edit


@dataclass(frozen=True)
class Choice:
    key: str  # as it stands on the keyboard
    name: str
    reason: str = ""  # why it cannot be done; "": it can


_EDITS: list[tuple[str, str, Edit]] = [
    ("⇧↑", "swap_up", edits.swap_up),
    ("⇧↓", "swap_down", edits.swap_down),
    ("⌫", "merge", edits.merge),
    ("V", "vectorize", edits.annotate("vectorize")),
    ("N", "unroll", edits.annotate("unroll")),
    ("P", "parallel", edits.annotate("cpu_parallel")),
    ("X", "clear", edits.clear),
    ("[", "less reuse", edits.decrease_reuse),
    ("]", "more reuse", edits.increase_reuse),
]


def why_not(tree: LoopTree, line: int, edit: Edit) -> str:
    """"": the tree admits the edit."""
    try:
        edit(tree, line)
    except ScheduleError as error:
        return str(error)
    return ""


def choices(tree: LoopTree, line: int) -> list[Choice]:
    size = tree.loop(line).size if tree.is_loop(line) else 0
    name = f"split 2..{size}" if size > 2 else "split"
    first = [Choice("S", name, why_not(tree, line, edits.split(2)))]
    return first + [Choice(key, name, why_not(tree, line, edit)) for key, name, edit in _EDITS]
