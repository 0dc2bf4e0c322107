"""Palette: the colours of the screen. Few, and quiet: what matters is bright, what cannot be done is dim."""

from __future__ import annotations

from textual.theme import Theme

BACKGROUND = "#14171d"
PANEL = "#181c23"
BORDER = "#39404d"
DIM = "#667080"
TEXT = "#c9d1dc"
BRIGHT = "#eef2f7"
LOOP = "#82aadb"
MARK = "#dcb474"  # annotations, what is under way
GOOD = "#93c48b"
BAD = "#dd7f85"
CURSOR = "#26324a"  # behind the cursor's line
DRAG = "#43361f"  # behind the line that is dragged

OF_GRADE = {"A": GOOD, "B": GOOD, "C": MARK, "D": BAD}

THEME = Theme(name="loopfleet", primary=LOOP, secondary=MARK, foreground=TEXT, background=BACKGROUND, surface=BACKGROUND,
              panel=PANEL, success=GOOD, warning=MARK, error=BAD, dark=True)
