"""Pane: lines in a frame, with the one that matters always in sight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rich.text import Text
from textual import events
from textual.widget import Widget


@dataclass
class Content:
    lines: list[Text] = field(default_factory=list)
    current: int | None = None  # the line that stays in sight
    top: int | None = None  # the first line shown, unless `current` is out of sight then


def window(count: int, height: int, current: int | None, top: int) -> int:
    """The first of ``height`` lines to show, as near to ``top`` as ``current`` allows."""
    if current is not None:
        margin = min(2, max(0, (height - 1) // 2))
        top = min(top, current - margin)
        top = max(top, current + margin - height + 1)
    return max(0, min(top, count - height))


class Pane(Widget):
    """``content`` is called with the width and height inside the frame. ``on_line``: a line was clicked."""

    def __init__(self, content: Callable[[int, int], Content], on_line: Callable[[int], None] | None = None, **options: object):
        super().__init__(**options)
        self._content = content
        self._on_line = on_line
        self._top = 0
        self._shown: list[Text] = []

    def draw(self) -> None:
        """Draws what changed."""
        shown = self._visible()
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render(self) -> Text:
        self._shown = self._visible()
        return Text("\n", no_wrap=True).join(self._shown)

    def _visible(self) -> list[Text]:
        width, height = self.size.width, self.size.height
        content = self._content(width, height)
        self._top = window(len(content.lines), height, content.current, self._top if content.top is None else content.top)
        shown = content.lines[self._top:self._top + height]
        for line in shown:
            line.truncate(width, overflow="ellipsis")
        return shown

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if self._on_line is not None and place is not None:
            self._on_line(self._top + place.y)


class Line(Widget):
    """One line of the screen."""

    def __init__(self, **options: object):
        super().__init__(**options)
        self._text = Text()

    def draw(self, text: Text) -> None:
        if text != self._text:
            self._text = text
            self.refresh()

    def render(self) -> Text:
        return self._text
