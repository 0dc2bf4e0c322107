"""CodeView: the code of a tree in one of several languages. C is there at once; the others come from a compiler or
take longer, in a thread."""

from __future__ import annotations

from collections.abc import Callable

from .. import _core
from .._core import JobError, LoopTree
from ..errors import LoopfleetError
from .newest import Newest

VIEWS = ("c", "llvm-ir", "asm", "dot")
TITLES = {"schedule": "schedule", "c": "C", "llvm-ir": "LLVM IR", "asm": "assembly", "dot": "Graphviz"}

# deliver(tree key, view, text)
Deliver = Callable[[str, str, str], None]


def c_text(tree: LoopTree) -> str:
    """Where the tree has no code, a comment that says why."""
    try:
        return _core.c_source_of(tree.serialize())
    except JobError as error:
        return f"/* {error} */\n"


def _text(tree: LoopTree, view: str) -> str:
    if view == "dot":
        return str(tree.ir)
    from ..tensor.schedules import Code

    try:
        return Code(tree.serialize())(view)
    except (LoopfleetError, JobError) as error:
        return str(error)


class CodeView:
    """``deliver`` is called in a thread. A tree that another one follows before its turn is dropped."""

    def __init__(self, deliver: Deliver):
        self._deliver = deliver
        self._tasks = Newest("loopfleet-code", self._make)

    def ask(self, tree: LoopTree, view: str) -> None:
        self._tasks.put((tree, view))

    def close(self) -> None:
        self._tasks.close()

    def _make(self, task: tuple[LoopTree, str]) -> None:
        tree, view = task
        self._deliver(tree.tree_key, view, _text(tree, view))
