"""EditorApp: the editor on a terminal. It draws what the Editor holds, and gives it keys."""

from __future__ import annotations

import asyncio

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.containers import Container

from . import code_view, palette
from .code_lines import code_lines, first_line, line_of_loop
from .editor import Editor
from .number_text import rate_text
from .pane import Content, Line, Pane
from .schedule_lines import schedule_lines
from .side_lines import help_lines, history_lines, key_line, legal_lines
from .status_lines import figure_line, place_line

_NARROW = 100  # columns: below, the code is a view instead of a pane
_VERY_NARROW = 60  # below, there is no history
_LOW = 18  # rows: below, neither the history nor what is legal


class EditorApp(App[None]):
    CSS = f"""
    Screen {{ background: {palette.BACKGROUND}; color: {palette.TEXT}; }}
    #place, #figure, #message, #keys {{ height: 1; }}
    #panes {{ layout: grid; grid-size: 2; grid-rows: 1fr 7; height: 1fr; }}
    #panes.narrow > #schedule, #panes.narrow > #code {{ column-span: 2; }}
    #panes.very-narrow {{ grid-size: 1; }}
    #panes.very-narrow > #schedule, #panes.very-narrow > #code {{ column-span: 1; }}
    #panes.low {{ grid-rows: 1fr; }}
    Pane {{
      width: 1fr; height: 1fr; padding: 0 1; border: round {palette.BORDER};
      border-title-color: {palette.DIM}; border-subtitle-color: {palette.DIM};
    }}
    """
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, editor: Editor):
        super().__init__()
        self.editor = editor
        self._will_draw = False
        self.register_theme(palette.THEME)
        self.theme = palette.THEME.name

    def compose(self) -> ComposeResult:
        self._lines = {name: Line(id=name) for name in ("place", "figure", "message", "keys")}
        self._panes = {
            "schedule": Pane(self._schedule, self._click, id="schedule"),
            "code": Pane(self._code, id="code"),
            "legal": Pane(lambda width, height: Content(legal_lines(self.editor, width)), id="legal"),
            "history": Pane(self._history, id="history"),
        }
        yield self._lines["place"]
        yield self._lines["figure"]
        with Container(id="panes"):
            yield from self._panes.values()
        yield self._lines["message"]
        yield self._lines["keys"]

    def on_mount(self) -> None:
        self._own_loop = asyncio.get_running_loop()
        self.editor.inbox.wake = self._wake
        self.editor.subscribe(self._draw_soon)
        self.editor.pump()
        self._draw_soon()

    def _wake(self) -> None:
        """Called in any thread."""
        try:
            self._own_loop.call_soon_threadsafe(self.editor.pump)
        except RuntimeError:  # the loop is closed: the app is over
            pass

    def on_resize(self, event: events.Resize) -> None:
        self.editor.set_narrow(event.size.width < _NARROW)
        self._draw_soon()

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        is_character = event.character is not None and event.character.isprintable() and event.key != "space"
        self.editor.press(event.character if is_character else event.key)
        if self.editor.is_over:
            self.exit()

    def on_paste(self, event: events.Paste) -> None:
        """Into a question; elsewhere pasted text would act as keys."""
        if self.editor.prompt is not None:
            self.editor.paste(event.text)

    # ---- drawing

    def _draw_soon(self) -> None:
        """Once for all keys that wait."""
        if not self._will_draw:
            self._will_draw = True
            self.call_later(self._draw)

    def _draw(self) -> None:
        self._will_draw = False
        editor, (width, height) = self.editor, self.size
        self._arrange(width, height)
        self._lines["place"].draw(place_line(editor, width))
        self._lines["figure"].draw(figure_line(editor, width))
        self._lines["message"].draw(self._message(width))
        self._lines["keys"].draw(key_line(width))
        for pane in self._panes.values():
            pane.draw()

    def _arrange(self, width: int, height: int) -> None:
        editor, panes = self.editor, self._panes
        is_alone = height < _LOW or editor.shows_help
        is_previewed = editor.preview is not None and editor.is_narrow
        shows_code = editor.shows_help or (editor.view != "schedule" and not is_previewed)
        container = self.query_one("#panes")
        container.set_class(width < _NARROW or editor.shows_help, "narrow")
        container.set_class(width < _VERY_NARROW, "very-narrow")
        container.set_class(is_alone, "low")
        panes["schedule"].display = not shows_code or not (editor.is_narrow or editor.shows_help)
        panes["code"].display = shows_code
        panes["legal"].display = not is_alone
        panes["history"].display = not is_alone and width >= _VERY_NARROW
        # Names of files and workers are no markup, which a title that is a str would be.
        panes["schedule"].border_title = Text("schedule" if editor.preview is None else editor.preview.origin)
        panes["schedule"].border_subtitle = self._schedule_subtitle()
        panes["legal"].border_title = "legal here"
        panes["history"].border_title = "done"
        title, panes["code"].border_subtitle = self._code_titles()
        panes["code"].border_title = Text(title)

    def _schedule_subtitle(self) -> str:
        if self.editor.preview is not None:
            return "Enter takes it, Esc leaves"
        return "Tab: code" if self.editor.is_narrow else ""

    def _code_titles(self) -> tuple[str, str]:
        editor = self.editor
        if editor.shows_help:
            return "keys", "Esc"
        title = code_view.TITLES[editor.view]
        others = [code_view.TITLES[view] for view in code_view.VIEWS if view != editor.view]
        return f"{title}  {editor.c_path}" if editor.view == "c" and editor.c_path else title, f"Tab: {' '.join(others)}"

    def _message(self, width: int) -> Text:
        editor = self.editor
        if editor.prompt is not None:
            prompt = editor.prompt
            line = Text.assemble((f" {prompt.question} ", palette.MARK), (prompt.text, palette.BRIGHT),
                                 ("_", f"blink {palette.MARK}"), "    ", (prompt.explanation, palette.DIM))
        elif editor.preview is not None and not editor.message:
            found = editor.preview
            figure = f"{rate_text(found.gflops)} GFLOP/s {found.grade}".strip()
            line = Text(f" {found.origin}: {figure}; Enter takes it, Esc leaves", palette.MARK)
        else:
            line = Text(f" {editor.message}", palette.BAD if editor.is_error else palette.TEXT)
        line.truncate(width, overflow="ellipsis")
        return line

    def _schedule(self, width: int, height: int) -> Content:
        editor = self.editor
        if editor.preview is not None:
            tree = editor.preview.tree
            lines = schedule_lines(tree, list(range(len(str(tree).splitlines()))), width - 2)
            return Content([Text("  ").append_text(line) for line in lines])
        visible = editor.visible_lines
        notes = {editor.cursor: f"dragging {editor.tree.loop(editor.cursor).label}"} if editor.is_dragging else {}
        lines = schedule_lines(editor.tree, visible, width - 2, folded=editor.folds.loops, shares=editor.shares, notes=notes)
        at = visible.index(editor.cursor)
        marked = [Text("  ").append_text(line) for line in lines]
        marked[at] = Text("> ", palette.MARK).append_text(lines[at])
        marked[at].stylize(f"on {palette.DRAG if editor.is_dragging else palette.CURSOR}")
        return Content(marked, at)

    def _code(self, width: int, height: int) -> Content:
        editor = self.editor
        if editor.shows_help:
            return Content(help_lines())
        code, view = editor.code, editor.view
        if not code or view == "schedule":
            return Content([Text("...", palette.DIM)])
        lines = [line.copy() for line in code_lines(code, view)]
        at = line_of_loop(code, view, editor.cursor)
        if at is not None:
            lines[at].pad_right(max(0, width - lines[at].cell_len))
            lines[at].stylize(f"on {palette.CURSOR}")
        return Content(lines, at, first_line(code, view))

    def _history(self, width: int, height: int) -> Content:
        return Content(history_lines(self.editor, width, height))

    def _click(self, row: int) -> None:
        if self.editor.preview is None and self.editor.prompt is None and row < len(self.editor.visible_lines):
            self.editor.move_to(self.editor.visible_lines[row])
