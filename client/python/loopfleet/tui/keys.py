"""Keys: which key calls which method of the editor. Letters count in either case."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Key:
    names: tuple[str, ...]  # as Textual calls them; characters stand for themselves
    method: str  # of Editor
    shown: str  # as it stands on the keyboard
    word: str = ""  # in the last line of the screen; "": it is not there


KEYS = (
    Key(("up",), "up", "↑"),
    Key(("down",), "down", "↓", "move"),
    Key(("enter",), "enter", "Enter", "drag"),
    Key(("shift+up",), "swap_up", "⇧↑"),
    Key(("shift+down",), "swap_down", "⇧↓"),
    Key(("s",), "ask_split", "S", "split"),
    Key(("backspace",), "merge", "⌫", "merge"),
    Key(("u",), "undo", "U", "undo"),
    Key(("r",), "redo", "R", "redo"),
    Key(("v",), "vectorize", "V", "vectorize"),
    Key(("n",), "unroll", "N", "unroll"),
    Key(("p",), "parallel", "P", "parallel"),
    Key(("x",), "clear", "X"),
    Key(("[", "left_square_bracket"), "decrease_reuse", "["),
    Key(("]", "right_square_bracket"), "increase_reuse", "]"),
    Key(("space",), "fold", "Space"),
    Key(("tab",), "next_view", "Tab"),
    Key(("f",), "ask_fleet", "F", "fleet"),
    Key(("b",), "toggle_search", "B", "search"),
    Key(("w",), "ask_write", "W", "save"),
    Key(("o",), "ask_open", "O"),
    Key(("t",), "ask_threads", "T"),
    Key((":", "colon"), "ask_actions", ":"),
    Key(("d",), "ask_profile", "D"),
    Key(("?", "question_mark"), "toggle_help", "?", "help"),
    Key(("escape",), "leave", "Esc"),
    Key(("q", "ctrl+c", "ctrl+q"), "quit", "Q", "quit"),
)

# What the help shows: keys that belong together, and what they do.
HELP = (
    ("↑ ↓", "move over loops and operations; in a drag, swap the loop along"),
    ("Enter", "start or end a drag; take what is previewed"),
    ("⇧↑ ⇧↓", "swap the loop with the one above or below"),
    ("S", "split the loop: asks for the inner size"),
    ("⌫", "merge the loop with the one around it over its dimension"),
    ("V N P X", "vectorize, unroll, run in parallel (again: do not); clear"),
    ("[ ]", "less, more reuse: operations share the loop less, or more"),
    ("U R", "undo, redo"),
    ("Space", "fold the loop's lines away, or show them"),
    ("Tab", "C, LLVM IR, assembly, Graphviz"),
    ("F", "preview the fleet's best known schedule"),
    ("B", "start a search; stop it and preview its best"),
    ("W O", "write the schedule to a file; open one"),
    ("T", "threads that parallel loops are split over"),
    (":", "a line of actions, such as down split_8 swap_down"),
    ("D", "profile: the share of each line, now and after each rest"),
    ("? Esc", "this help; leave it, a drag, a question or a preview"),
    ("Q", "quit"),
)

METHODS = {name: key.method for key in KEYS for name in key.names}


def method_of(key: str) -> str | None:
    return METHODS.get(key.lower() if len(key) == 1 else key)
