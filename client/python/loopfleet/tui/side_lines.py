"""SideLines: what is legal at the cursor, what was done, and the keys, as lines of the screen."""

from __future__ import annotations

from rich.text import Text

from . import palette
from .editor import Editor
from .keys import HELP, KEYS
from .number_text import change_text, rate_text
from .palette import BRIGHT, DIM, LOOP, TEXT

_COLOUR_OF_CHANGE = {"-": palette.BAD, "0": DIM}  # by how its text begins


def legal_lines(editor: Editor, width: int) -> list[Text]:
    """In columns; what is illegal is dim."""
    cells = []
    for choice in editor.legal:
        is_legal = not choice.reason
        cells.append(Text.assemble((f"{choice.key:>2} ", LOOP if is_legal else DIM),
                                   (choice.name, TEXT if is_legal else DIM)))
    column = max(cell.cell_len for cell in cells) + 2
    count = max(1, (width + 2) // column)
    height = -(-len(cells) // count)
    lines = []
    for row in range(height):
        line = Text()
        for cell in cells[row::height]:
            cell.pad_right(column - cell.cell_len)
            line.append_text(cell)
        line.truncate(width)
        lines.append(line)
    return lines


def history_lines(editor: Editor, width: int, height: int) -> list[Text]:
    """The newest first, the step that is shown among them, with graded figures and how much each changed."""
    steps, position = editor.history.steps, editor.history.position
    rates = _rates(editor)
    newest = min(len(steps), max(position + height // 2 + 1, height))
    return [_history_line(editor, place, rates, width) for place in range(newest - 1, max(-1, newest - 1 - height), -1)]


def _rates(editor: Editor) -> list[float | None]:
    """GFLOP/s of each step."""
    graded = [editor.figure_of(step).graded for step in editor.history.steps]
    return [each.gflops if each else None for each in graded]


def _history_line(editor: Editor, place: int, rates: list[float | None], width: int) -> Text:
    step, position, rate = editor.history.steps[place], editor.history.position, rates[place]
    style = f"bold {BRIGHT}" if place == position else DIM if place > position else TEXT
    label, right = Text(f"{place:3} {step.label}", style), Text()
    if rate is not None:
        grade = editor.figure_of(step).graded.grade
        before = next((each for each in reversed(rates[:place]) if each is not None), None)
        change = change_text(before, rate) if before else ""
        right = Text.assemble((f"{rate_text(rate):>5}", TEXT), (f" {grade}", palette.OF_GRADE.get(grade, TEXT)),
                              (f" {change:>7}", _COLOUR_OF_CHANGE.get(change[:1], palette.GOOD)))
    label.truncate(max(0, width - right.cell_len - 1), overflow="ellipsis", pad=True)
    return label.append(" ").append_text(right)


def help_lines() -> list[Text]:
    return [Text.assemble((f"{keys:>7}  ", f"bold {LOOP}"), (text, TEXT)) for keys, text in HELP]


def key_line(width: int) -> Text:
    """As many keys as there is room for; `? help` always is."""
    line, last = Text(" "), Text.assemble(("?", f"bold {LOOP}"), (" help", DIM))
    for key in KEYS:
        if not key.word or key.method == "toggle_help":
            continue
        shown = "↑↓" if key.method == "down" else key.shown
        part = Text.assemble((shown, f"bold {LOOP}"), (f" {key.word}  ", DIM))
        if line.cell_len + part.cell_len + last.cell_len <= width - 1:
            line.append_text(part)
    return line.append_text(last)
