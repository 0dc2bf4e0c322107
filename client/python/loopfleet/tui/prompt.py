"""Prompt: a question in the last line, and the text typed so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._core import LoopTree
from ..errors import ScheduleError
from . import edits

_LONGEST = 4000  # characters


@dataclass
class Prompt:
    question: str
    submit: Callable[[str], str]  # does it; gives why it cannot be done, and then the prompt stays
    explain: Callable[[str], str] = lambda text: ""  # what the text would do, while it is typed
    text: str = ""
    problem: str = ""  # of the last submit

    @property
    def explanation(self) -> str:
        return self.problem or self.explain(self.text)

    def type(self, key: str) -> None:
        """A character, or the name of a key that edits text. Others change nothing."""
        if key == "backspace":
            self.text = self.text[:-1]
        elif key == "space":
            self.text += " "
        elif len(key) == 1 and key.isprintable():
            self.text = (self.text + key)[:_LONGEST]
        else:
            return
        self.problem = ""


def whole_number(text: str, what: str) -> int:
    """ScheduleError: it is none."""
    text = text.strip()
    if not text:
        raise ScheduleError(f"{what} is a whole number")
    if not (text.isascii() and text.isdigit()) or len(text) > 12:
        raise ScheduleError(f"{what} is a whole number, not '{text}'")
    return int(text)


def _elements_inside(tree: LoopTree, line: int) -> int:
    """The elements of its dimension that one iteration of a loop covers."""
    loop = tree.loop(line)
    inside = [ref for ref in tree.loops if ref > line and tree.loop(ref).name == loop.name and _is_inside(tree, ref, line)]
    if not inside:
        return 1
    first = tree.loop(inside[0])
    return first.size * _elements_inside(tree, inside[0]) + first.tail


def _is_inside(tree: LoopTree, ref: int, loop: int) -> bool:
    while ref > loop:
        ref = tree.parent(ref)
    return ref == loop


def split_text(tree: LoopTree, line: int, text: str) -> str:
    """"33 = 4 x 8 + 1", or why it cannot be split so."""
    try:
        inner = whole_number(text, "the inner size")
        after = edits.split(inner)(tree, line).tree
    except ScheduleError as error:
        return str(error)
    outer, each = after.loop(line), inner * _elements_inside(tree, line)
    tail = f" + {outer.tail}" if outer.tail else ""
    return f"{outer.size * each + outer.tail} = {outer.size} x {each}{tail}"
