"""CodeView: the code of a tree in one of several languages. C is there at once; the others come from a compiler or
take longer, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

from .. import _core
from .._core import LoopTree
from ..errors import LoopfleetError

VIEWS = ("c", "llvm-ir", "asm", "dot")
TITLES = {"schedule": "schedule", "c": "C", "llvm-ir": "LLVM IR", "asm": "assembly", "dot": "Graphviz"}

# deliver(tree key, view, text)
Deliver = Callable[[str, str, str], None]


def c_text(tree: LoopTree) -> str:
    """LoopfleetError: the tree has no code."""
    return _core.c_source_of(tree.serialize())


def _text(tree: LoopTree, view: str) -> str:
    if view == "dot":
        return str(tree.ir)
    from ..tensor.schedules import Code

    return Code(tree.serialize())(view)


class CodeView:
    """``deliver`` is called in a thread; text that is known is not made again."""

    def __init__(self, deliver: Deliver):
        self._deliver = deliver
        self._asked: set[tuple[str, str]] = set()

    def ask(self, tree: LoopTree, view: str) -> None:
        wanted = (tree.tree_key, view)
        if wanted in self._asked:
            return
        self._asked.add(wanted)
        threading.Thread(target=self._make, args=(tree, *wanted), name="loopfleet-code", daemon=True).start()

    def _make(self, tree: LoopTree, key: str, view: str) -> None:
        try:
            text = _text(tree, view)
        except LoopfleetError as error:
            text = str(error)
        self._deliver(key, view, text)
