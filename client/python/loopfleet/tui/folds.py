"""Folds: the loops whose lines are folded away."""

from __future__ import annotations

from .._core import LoopTree


class Folds:
    def __init__(self) -> None:
        self.loops: set[int] = set()  # by number, of the tree that is shown

    def toggle(self, loop: int) -> None:
        self.loops ^= {loop}

    def show(self, tree: LoopTree, line: int) -> None:
        """Opens what hides a line."""
        around = tree.parent(line)
        while around >= 0:
            self.loops.discard(around)
            around = tree.parent(around)

    def visible_lines(self, tree: LoopTree) -> list[int]:
        hidden = set()
        lines = []

        def visit(line: int, depth: int) -> None:
            around = tree.parent(line)
            if around in hidden or around in self.loops:
                hidden.add(line)
            else:
                lines.append(line)

        tree.walk(visit)
        return lines

    def follow(self, before: LoopTree, after: LoopTree) -> None:
        """The tree changed: the nearest loops of the same labels are folded."""
        kept = set()
        for loop in self.loops:
            nearest = after.map_ref(loop, before)
            if after.loop(nearest).label == before.loop(loop).label:
                kept.add(nearest)
        self.loops = kept
