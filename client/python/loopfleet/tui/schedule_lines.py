"""ScheduleLines: the loop tree as lines of the screen."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from math import prod
from types import MappingProxyType

from rich.text import Text

from .._core import LoopTree
from . import palette
from .palette import BRIGHT, DIM, LOOP, MARK, TEXT

_BAR_WIDTH = 4


def schedule_lines(tree: LoopTree, lines: list[int], width: int, *, folded: AbstractSet[int] = frozenset(),
                   shares: Mapping[int, float] = MappingProxyType({}), notes: Mapping[int, str] = MappingProxyType({})
                   ) -> list[Text]:
    """Of some lines: each one's text on the left; its buffer, share or note on the right, as far as there is room."""
    whole = str(tree).splitlines()
    return [_line(tree, line, whole, width, line in folded, shares.get(line), notes.get(line, "")) for line in lines]


def _line(tree: LoopTree, line: int, whole: list[str], width: int, is_folded: bool, share: float | None, note: str) -> Text:
    text = whole[line].lstrip(" ")
    depth = len(whole[line]) - len(text)
    left = Text(" " * depth)
    if tree.is_loop(line):
        left.append_text(_loop(tree, line))
        if is_folded:
            left.append(f"  ... {_count_inside(whole, line, depth)} lines", DIM)
    else:
        left.append_text(_operation(text))
    right = Text(f"[{note}]", MARK) if note else Text(_buffer_text(tree, line, text), DIM)
    if share is not None:
        right.append_text(_share(share))
    gap = width - left.cell_len - right.cell_len - 1
    if gap >= 2:
        left.append(" " * gap).append_text(right)
    left.truncate(width, overflow="ellipsis", pad=True)
    return left


def _count_inside(whole: list[str], line: int, depth: int) -> int:
    count = 0
    while line + count + 1 < len(whole) and whole[line + count + 1].startswith(" " * (depth + 1)):
        count += 1
    return count


def _loop(tree: LoopTree, line: int) -> Text:
    loop = tree.loop(line)
    text = Text.assemble(("for ", DIM), (loop.label, f"bold {LOOP}"), (" in ", DIM), (str(loop.size), BRIGHT))
    if loop.tail:
        text.append(" r ", DIM).append(str(loop.tail), BRIGHT)
    text.append(f" : L{line}", DIM)
    if loop.annotation:
        text.append(f" {loop.annotation}", MARK)
    return text


def _operation(text: str) -> Text:
    result, arrow, formula = text.partition(" <- ")
    name, bracket, operands = formula.partition("(")
    return Text.assemble((result, TEXT), (arrow, DIM), (name, BRIGHT), (bracket + operands, TEXT))


def _buffer_text(tree: LoopTree, line: int, text: str) -> str:
    """"8 x 32 = 256 floats": where an operation's result waits for its readers. Single elements are in registers."""
    if tree.is_loop(line) or " <- write(" in text:
        return ""
    extents = [extent for _, extent in tree.buffer(line) if extent > 1]
    if not extents:
        return ""
    product = f" = {prod(extents):,}" if len(extents) > 1 else ""
    return f"{' x '.join(f'{extent:,}' for extent in extents)}{product} floats"


def _share(share: float) -> Text:
    bar = "█" * round(share * _BAR_WIDTH)
    return Text.assemble((f"  {share * 100:3.0f} %", TEXT), (f" {bar:<{_BAR_WIDTH}}", palette.LOOP))
