"""History: the trees of a session, for undo and redo."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .._core import LoopTree
from .recording import Recording


@dataclass(frozen=True)
class Step:
    label: str  # the edit that made the tree
    tree: LoopTree
    key: str  # tree_key
    cursor: int  # the line that the cursor is on, or was when the step was left
    recording: Recording | None  # None: actions do not suffice


class History:
    """Steps from the start on, one of which is shown. An edit forgets the steps that were undone."""

    def __init__(self, start: Step):
        self._steps = [start]
        self.position = 0

    @property
    def now(self) -> Step:
        return self._steps[self.position]

    @property
    def steps(self) -> list[Step]:
        """With those that redo would bring back."""
        return list(self._steps)

    def leave(self, cursor: int) -> None:
        self._steps[self.position] = replace(self.now, cursor=cursor)

    def add(self, step: Step) -> None:
        del self._steps[self.position + 1:]
        self._steps.append(step)
        self.position += 1

    def undo(self) -> bool:
        """False: this is the start."""
        if self.position == 0:
            return False
        self.position -= 1
        return True

    def redo(self) -> bool:
        """False: nothing was undone."""
        if self.position + 1 == len(self._steps):
            return False
        self.position += 1
        return True
