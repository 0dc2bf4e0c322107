"""Editors without a terminal, for tests."""

from loopfleet import LoopTree
from loopfleet.tui.editor import Editor

ARTICLE = "benchmark://program-v0/positive_product33_48_64"


def edited(*keys, start=ARTICLE, **options):
    editor = Editor(LoopTree(start), **options)
    for key in keys:
        editor.press(key)
    return editor
