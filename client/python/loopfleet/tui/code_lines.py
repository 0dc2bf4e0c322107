"""CodeLines: code with its colours, and which of its lines belongs to a loop."""

from __future__ import annotations

import re
from functools import lru_cache

from pygments.token import Comment, Keyword, Literal, Name, Token
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.style import Style
from rich.text import Text

from .palette import BRIGHT, DIM, GOOD, LOOP, MARK, TEXT

_LEXERS = {"c": "c", "llvm-ir": "llvm", "asm": "gas", "dot": "graphviz"}
_THEME = ANSISyntaxTheme({
    Token: Style(color=TEXT), Comment: Style(color=DIM), Comment.Preproc: Style(color=DIM),
    Keyword: Style(color=LOOP), Keyword.Type: Style(color=GOOD), Name.Function: Style(color=BRIGHT),
    Literal: Style(color=MARK), Literal.String: Style(color=MARK),
})


@lru_cache(maxsize=8)
def code_lines(code: str, view: str) -> tuple[Text, ...]:
    """With numbers, from 1."""
    syntax = Syntax("", _LEXERS[view], theme=_THEME)
    text = syntax.highlight(code)
    numbers = len(str(code.count("\n") + 1))
    return tuple(Text.assemble((f"{number:>{numbers}}  ", DIM), line)
                 for number, line in enumerate(text.split("\n"), 1) if number <= code.count("\n") or line.plain)


def first_line(code: str, view: str) -> int:
    """Where the code begins behind the comment that describes it."""
    end = code.find("*/\n") if view == "c" else -1
    return code.count("\n", 0, end) + 1 if end >= 0 else 0


def line_of_loop(code: str, view: str, loop: int) -> int | None:
    """The first line of a loop's own; None: code of this kind does not say."""
    found = re.search(rf"/\* L{loop}: ", code) if view == "c" else None
    return code.count("\n", 0, found.start()) if found else None
