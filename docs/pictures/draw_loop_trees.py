#!/usr/bin/env python3
"""Draws the pictures of docs/LOOP_TREES.md from what `loopfleet replay` says: loops as boxes inside
each other, coloured by dimension, operations as lines.

    draw_loop_trees.py --bin DIR           writes the SVG files beside this script
    draw_loop_trees.py --bin DIR --check   says which of them no longer show what replay says
"""

import argparse
import html
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MM = "benchmark://mm-v0/mm64_64_64"
ADD = "benchmark://loop_tool-cpu-v0/1024"


def matmul(*actions, uri=MM):
    return {"uri": uri, "actions": list(actions)}


# Name -> what is drawn from left to right: (caption, request). The name of an action stands on the
# arrow between two trees.
PICTURES = {
    "start": [("", matmul())],
    "down": [("", matmul()), ("down", matmul("down"))],
    "swap_down": [("", matmul("down")), ("swap_down", matmul("down", "swap_down"))],
    "split": [("", matmul()), ("split_16", matmul("split_16"))],
    "split_with_a_tail": [("", matmul(uri="benchmark://mm-v0/mm33_64_64")),
                          ("split_8", matmul("split_8", uri="benchmark://mm-v0/mm33_64_64"))],
    "merge": [("", matmul("split_16", "down")), ("merge", matmul("split_16", "down", "merge"))],
    "unroll": [("", matmul("down")), ("unroll", matmul("down", "unroll"))],
    "vectorize": [("", matmul("down", "down")),
                  ("vectorize", matmul("down", "down", "vectorize"))],
    "simple": [("", {"uri": ADD, "actions": []}),
               ("toggle_mode, up, toggle_mode, up, up",
                {"uri": ADD, "actions": ["toggle_mode", "up", "toggle_mode", "up", "up"]})],
}

FONT = 13
LINE = 20
PAD = 8
CHARACTER = 7.85  # of the monospaced font, at most
COLOURS = ["#dbe9f6", "#fde5cf", "#dcf1dc", "#efdff3", "#f7dcdc", "#e8e4d0"]
EDGES = ["#5b8fc7", "#d98a3d", "#5aa55a", "#9b6bb0", "#c65b5b", "#8d8455"]
CURSOR = " <<<<<< cursor"


def replay(binary, request):
    request = {**request, "observations": ["loop_tree"]}
    done = subprocess.run([binary, "replay"], input=json.dumps(request), text=True,
                          capture_output=True, check=True)
    return json.loads(done.stdout)["loop_tree"]


class Node:
    def __init__(self, text, depth):
        self.at_cursor = CURSOR in text
        self.text = text.split(CURSOR)[0].strip()
        self.depth = depth
        self.children = []
        loop = re.match(r"for (\w+)'* in ", self.text)
        self.dimension = loop.group(1) if loop else None

    def width(self):
        own = len(self.text) * CHARACTER + 2 * PAD + (60 if self.at_cursor else 0)
        return max([own] + [child.width() + 2 * PAD for child in self.children])

    def height(self):
        if self.dimension is None:
            return LINE
        inside = sum(child.height() for child in self.children)
        return LINE + 4 + inside + 6 * len(self.children) + 4


def parse(tree):
    """The roots of a tree's text: one blank of indent for each depth."""
    roots, stack = [], []
    for line in tree.splitlines():
        node = Node(line, len(line) - len(line.lstrip(" ")))
        del stack[node.depth:]
        (stack[-1].children if stack else roots).append(node)
        stack.append(node)
    return roots


def dimensions_of(roots):
    """In the order in which they appear."""
    found = {}
    for node in roots:
        if node.dimension:
            found.setdefault(node.dimension)
        found.update(dict.fromkeys(dimensions_of(node.children)))
    return list(found)


def text_at(x, y, text, **attributes):
    extra = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in attributes.items())
    return f'<text x="{x:.0f}" y="{y:.0f}"{extra}>{html.escape(text)}</text>'


def draw(node, x, y, width, dimensions):
    if node.dimension is None:
        return [text_at(x + PAD, y + 15, node.text)]
    colour = dimensions.index(node.dimension) % len(COLOURS)
    height = node.height()
    edge = 'stroke="#c00000" stroke-width="2.5"' if node.at_cursor else \
        f'stroke="{EDGES[colour]}"'
    out = [f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height}" rx="5" '
           f'fill="{COLOURS[colour]}" {edge}/>',
           text_at(x + PAD, y + 17, node.text, font_weight="bold")]
    if node.at_cursor:
        out.append(text_at(x + width - PAD, y + 17, "cursor", fill="#c00000", text_anchor="end"))
    y += LINE + 4
    for child in node.children:
        y += 3
        out += draw(child, x + PAD, y, width - 2 * PAD, dimensions)
        y += child.height() + 3
    return out


def picture(trees):
    """[(caption, tree text)] as SVG, side by side."""
    parsed = [(caption, parse(tree)) for caption, tree in trees]
    dimensions = dimensions_of([root for _, roots in parsed for root in roots])
    out, x, highest = [], 12.0, 0
    for caption, roots in parsed:
        if caption:
            length = max(70.0, len(caption) * CHARACTER + 24)
            out += [text_at(x + length / 2, 40, caption, text_anchor="middle"),
                    f'<path d="M{x + 6:.0f} 52 H{x + length - 10:.0f}" stroke="#333" '
                    'stroke-width="1.5" marker-end="url(#head)"/>']
            x += length
        width = max(root.width() for root in roots)
        y = 12
        for root in roots:
            out += draw(root, x, y, width, dimensions)
            y += root.height() + 8
        highest = max(highest, y)
        x += width + 4
    width, height = x + 8, max(highest + 4, 70)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="DejaVu Sans Mono, Menlo, Consolas, '
        f'monospace" font-size="{FONT}">',
        '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z" fill="#333"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *out,
        "</svg>\n"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", required=True, help="the folder with the executable loopfleet")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    binary = str(pathlib.Path(arguments.bin) / "loopfleet")
    stale = []
    for name, steps in PICTURES.items():
        svg = picture([(caption, replay(binary, request)) for caption, request in steps])
        file = HERE / f"{name}.svg"
        if not arguments.check:
            file.write_text(svg, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != svg:
            stale.append(file.name)
    stale += [file.name for file in HERE.glob("*.svg") if file.stem not in {*PICTURES, "editor"}]
    if stale:
        print("no longer what replay says:", ", ".join(sorted(stale)))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
