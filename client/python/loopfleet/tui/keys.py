"""Keys: which key calls which method of the editor. Letters count in either case."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Key:
    names: tuple[str, ...]  # as Textual calls them; characters stand for themselves
    method: str  # of Editor
    shown: str
    word: str  # in the last line of the screen; "": not there
    help: str


KEYS = (
    Key(("up",), "up", "↑↓", "move", "move over loops and operations; in a drag, swap the loop along"),
    Key(("down",), "down", "", "", ""),
    Key(("enter",), "enter", "Enter", "drag", "start or end a drag; take what is previewed"),
    Key(("shift+up",), "swap_up", "⇧↑ ⇧↓", "", "swap the loop with the one above or below"),
    Key(("shift+down",), "swap_down", "", "", ""),
    Key(("s",), "ask_split", "S", "split", "split the loop: asks for the inner size"),
    Key(("backspace",), "merge", "⌫", "merge", "merge the loop with the one around it over its dimension"),
    Key(("u",), "undo", "U", "undo", "undo"),
    Key(("r",), "redo", "R", "redo", "redo"),
    Key(("v",), "vectorize", "V", "vectorize", "vectorize the loop; again: do not"),
    Key(("n",), "unroll", "N", "unroll", "unroll the loop; again: do not"),
    Key(("p",), "parallel", "P", "parallel", "run the loop's iterations on several threads; again: do not"),
    Key(("x",), "clear", "X", "", "clear the loop's annotation"),
    Key(("[", "left_square_bracket"), "decrease_reuse", "[ ]", "", "less, more reuse: operations share the loop less, or more"),
    Key(("]", "right_square_bracket"), "increase_reuse", "", "", ""),
    Key(("space",), "fold", "Space", "", "fold the loop's lines away, or show them"),
    Key(("tab",), "next_view", "Tab", "", "C, LLVM IR, assembly, Graphviz; on a narrow screen the schedule, too"),
    Key(("f",), "ask_fleet", "F", "fleet", "preview the fleet's best known schedule"),
    Key(("b",), "toggle_search", "B", "search", "start a search; stop it and preview its best"),
    Key(("w",), "ask_write", "W", "save", "write the schedule to a file"),
    Key(("o",), "ask_open", "O", "", "open a schedule from a file"),
    Key(("t",), "ask_threads", "T", "", "threads that parallel loops are split over"),
    Key((":", "colon"), "ask_actions", ":", "", "a line of actions, such as down split_8 swap_down"),
    Key(("d",), "ask_profile", "D", "", "profile: the share of each line"),
    Key(("?", "question_mark"), "toggle_help", "?", "help", "these keys"),
    Key(("escape",), "leave", "Esc", "", "end a drag, leave a question, a preview or this help"),
    Key(("q", "ctrl+c", "ctrl+q"), "quit", "Q", "quit", "quit"),
)

METHODS = {name: key.method for key in KEYS for name in key.names}


def method_of(key: str) -> str | None:
    return METHODS.get(key.lower() if len(key) == 1 else key)
