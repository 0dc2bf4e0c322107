"""Edits: what one key does to a tree at a line of it. Pure functions, which raise ScheduleError with the reason where
the tree does not admit them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._core import Loop, LoopTree
from ..errors import ScheduleError


@dataclass(frozen=True)
class Edited:
    tree: LoopTree
    cursor: int
    loop: int = 0  # where `action` does the same
    action: str = ""  # of dialect agent; "": none does


Edit = Callable[[LoopTree, int], Edited]


def loop_at(tree: LoopTree, line: int) -> Loop:
    if not tree.is_loop(line):
        raise ScheduleError(f"{tree.dump(line)} is an operation: move to one of its loops")
    return tree.loop(line)


def name_of(tree: LoopTree, line: int) -> str:
    loop = tree.loop(line)
    return f"L{line} (for {loop.label} in {loop.size})"


def neighbour(tree: LoopTree, line: int, step: int) -> int | None:
    """The loop after the line (``step`` 1) or before it (-1), as the lines stand."""
    loops = [loop for loop in tree.loops if (loop - line) * step > 0]
    return (loops[0] if step > 0 else loops[-1]) if loops else None


def _last_loop(tree: LoopTree, line: int) -> int:
    """The last loop up to the line: nests may have fused."""
    return max((loop for loop in tree.loops if loop <= line), default=0)


def _swap(tree: LoopTree, line: int, step: int, action: str) -> Edited:
    loop_at(tree, line)
    other = neighbour(tree, line, step)
    if other is None:
        raise ScheduleError(f"there is no loop {'below' if step > 0 else 'above'} {name_of(tree, line)}")
    after = tree.swap(line, other)
    cursor = neighbour(after, line, step)
    return Edited(after, _last_loop(after, line if cursor is None else cursor), line, action)


def swap_up(tree: LoopTree, line: int) -> Edited:
    return _swap(tree, line, -1, "swap_up")


def swap_down(tree: LoopTree, line: int) -> Edited:
    return _swap(tree, line, 1, "swap_down")


def split(inner: int) -> Edit:
    """Into a loop around one of size ``inner``."""

    def edit(tree: LoopTree, line: int) -> Edited:
        loop = loop_at(tree, line)
        if not 2 <= inner <= loop.size:
            if loop.size < 2:
                raise ScheduleError(f"{name_of(tree, line)} has one iteration: there is nothing to split")
            raise ScheduleError(f"an inner size is from 2 to {loop.size}, not {inner}")
        return Edited(tree.split(line, inner), line, line, f"split_{inner}")

    return edit


def merge(tree: LoopTree, line: int) -> Edited:
    loop = loop_at(tree, line)
    after = tree.merge(line)
    if after == tree:
        raise ScheduleError(f"there is no loop over {loop.name} around {name_of(tree, line)}")
    return Edited(after, _last_loop(after, line), line, "merge")


_ACTION_OF = {"vectorize": "vectorize", "unroll": "unroll"}  # by annotation


def annotate(word: str) -> Edit:
    """Where the loop has the annotation already, it loses it."""

    def edit(tree: LoopTree, line: int) -> Edited:
        has = loop_at(tree, line).annotation
        after = tree.annotate(line, "" if has == word else word)
        return Edited(after, _last_loop(after, line), line, _ACTION_OF.get(word, ""))

    return edit


def clear(tree: LoopTree, line: int) -> Edited:
    loop = loop_at(tree, line)
    if not loop.annotation:
        raise ScheduleError(f"{name_of(tree, line)} has no annotation")
    after = tree.clear(line)
    return Edited(after, _last_loop(after, line), line, _ACTION_OF.get(loop.annotation, ""))


def decrease_reuse(tree: LoopTree, line: int) -> Edited:
    return _reused(tree, tree.decrease_reuse(line), line)


def increase_reuse(tree: LoopTree, line: int) -> Edited:
    return _reused(tree, tree.increase_reuse(line), line)


def _reused(tree: LoopTree, after: LoopTree, line: int) -> Edited:
    if after.serialize() == tree.serialize():
        raise ScheduleError(f"{tree.dump(line)}: there is no loop left to change")
    return Edited(after, min(line, len(tree_lines(after)) - 1))


def tree_lines(tree: LoopTree) -> list[str]:
    """Its text, one line for each loop and operation."""
    return str(tree).splitlines()
