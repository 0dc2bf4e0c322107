#!/usr/bin/env python3
"""Draws docs/pictures/editor.svg: the schedule editor after a dozen keys that tune a sum of positive products, on a
cluster of this machine.

    PYTHONPATH=build/release/python LOOPFLEET_BIN=build/release/bin build/python/bin/python docs/pictures/draw_editor.py
"""

import asyncio
import html
import re
import sys
from pathlib import Path

import loopfleet
from loopfleet.tui.editor import Editor
from loopfleet.tui.screen import EditorApp
from loopfleet.tui.sources import sources_of

BENCHMARK = "program-v0/positive_product64_17_64"
KEYS = ["s", "4", "enter", "s", "4", "enter", "down", "down", "down", "enter", "up", "up"]
SIZE = (120, 30)
CELL = 12.2  # width of a character in Textual's SVG


def plain(svg):
    """Without fonts from the network, and with each run of characters beginning at its first one that is no space: not
    every program that draws SVG keeps spaces."""
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.S)
    svg = svg.replace("Fira Code, monospace", "DejaVu Sans Mono, Menlo, Consolas, monospace")

    def moved(match):
        before, x, middle, length, after, text = match.groups()
        content = html.unescape(text).replace("\xa0", " ")
        start = len(content) - len(content.lstrip(" "))
        content = content.strip(" ")
        if not content:
            return ""
        shown = html.escape(content, quote=False).replace(" ", "&#160;")
        return f'{before}{float(x) + start * CELL:.1f}{middle}{len(content) * CELL:.1f}{after}{shown}</text>'

    return re.sub(r'(<text[^>]*? x=")([\d.]+)("[^>]*? textLength=")([\d.]+)("[^>]*>)([^<]*)</text>', moved, svg)


async def draw(path, keys, size):
    with loopfleet.LocalCluster(), loopfleet.Client() as client:
        start = loopfleet.LoopTree(f"benchmark://{BENCHMARK}")
        editor = Editor(start, title=BENCHMARK.rpartition("/")[2], sources=sources_of(client))
        app = EditorApp(editor)
        async with app.run_test(size=size) as pilot:
            for key in keys:
                await pilot.press(key)
                for _ in range(200):  # 20 s: each step gets its figure
                    await pilot.pause(0.1)
                    if not editor.figure.is_measured and not editor.figure.is_measured_here:
                        break
            svg = plain(app.export_screenshot(title="loopfleet tune"))
        editor.close()
    Path(path).write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(draw(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("editor.svg"), KEYS, SIZE))
