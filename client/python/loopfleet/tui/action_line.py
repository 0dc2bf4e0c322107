"""ActionLine: actions of dialect agent by their names, typed as one line. Moves are over loops, as in jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import _core
from .._core import JobError, LoopTree, Walk
from ..errors import ScheduleError
from . import edits
from .edits import Edit, Edited

if TYPE_CHECKING:
    from .editor import Editor

_MOST_WORDS = 1024  # as of a job


@dataclass(frozen=True)
class Done:
    """An action that `undo` takes back."""

    cursor: int  # before it
    is_step: bool  # of the editor's history


def _by_walk(action: str, reasoned: Edit) -> Edit:
    """What the action of dialect agent does, at a loop. ``reasoned`` says why it is illegal."""

    def edit(tree: LoopTree, line: int) -> Edited:
        edits.loop_at(tree, line)
        walk = Walk(ir=tree.serialize(), start_cursor=line)
        try:
            is_legal = walk.apply(action)
        except JobError as error:
            raise ScheduleError(str(error)) from None
        if not is_legal:
            reasoned(tree, line)
            raise ScheduleError("it is illegal here")
        return Edited(LoopTree(walk.observe("ir")), walk.cursor, line, action)

    return edit


def _nothing(tree: LoopTree, line: int) -> Edited:
    return Edited(tree, line)


_EDITS: dict[str, Edit] = {
    "swap_up": _by_walk("swap_up", edits.swap_up), "swap_down": _by_walk("swap_down", edits.swap_down),
    **{action: _by_walk(action, _nothing) for action in ("merge", "merge_all", "vectorize", "unroll")},
    "dummy": _nothing, "parallel": edits.annotate("cpu_parallel"), "clear": edits.clear,
    "decrease_reuse": edits.decrease_reuse, "increase_reuse": edits.increase_reuse,
}
_MOVES = {"up": -1, "down": 1}


def words_of(text: str) -> list[str]:
    """ScheduleError: one is no action."""
    words = text.replace(",", " ").split()
    if len(words) > _MOST_WORDS:
        raise ScheduleError(f"{len(words)} actions: at most {_MOST_WORDS} at a time")
    known = [*_EDITS, *_MOVES, "undo", "split_8"]
    for word in words:
        if word not in known and not re.fullmatch(r"split_\d{1,12}", word):
            raise ScheduleError(f"unknown action '{word}'{_core.nearest(word, known)}")
    return words


def explain(text: str) -> str:
    try:
        words_of(text)
    except ScheduleError as error:
        return str(error)
    return ""


def run(editor: Editor, text: str, done: list[Done]) -> str:
    """Each action is a step. The first that is illegal ends it, and is left in the prompt with what follows; gives why,
    or "". ``done`` is what the prompt's earlier lines did, and is added to: `undo` takes back moves, too, and nothing
    from before the prompt."""
    try:
        words = words_of(text)
    except ScheduleError as error:
        return str(error)
    for number, word in enumerate(words, 1):
        try:
            _run_one(editor, word, done)
        except ScheduleError as error:
            if editor.prompt is not None:
                editor.prompt.text = " ".join(words[number - 1:])
            return f"{word}: {error}"
    return ""


def _run_one(editor: Editor, word: str, done: list[Done]) -> None:
    cursor, is_step = editor.cursor, False
    if word == "undo":
        _undo(editor, done)
        return
    if word in _MOVES:
        editor.move_over_loops(_MOVES[word])
    elif word.startswith("split_"):
        inner = int(word.removeprefix("split_"))
        is_step = editor.apply(word, _by_walk(word, edits.split(inner)))
    else:
        is_step = editor.apply(word, _EDITS[word])
    done.append(Done(cursor, is_step))


def _undo(editor: Editor, done: list[Done]) -> None:
    if not done:
        raise ScheduleError("there is nothing to undo in this line; U undoes earlier edits")
    last = done.pop()
    if last.is_step:
        editor.undo()
    editor.move_to(last.cursor)
