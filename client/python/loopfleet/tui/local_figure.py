"""LocalFigures: times the newest tree in this process, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from .. import _core
from .._core import LoopTree
from ..errors import LoopfleetError

# deliver(tree key, nanoseconds of a run or None, the failure's text or "")
Deliver = Callable[[str, "float | None", str], None]


class LocalFigures:
    """``deliver`` is called in this class's thread. A tree that another one follows before its turn is dropped."""

    def __init__(self, deliver: Deliver, threads: int = 1, budget_ms: float = 10):
        self._deliver = deliver
        self._budget_ms = budget_ms
        self._threads = threads
        self._next: LoopTree | None = None
        self._changed = threading.Condition()
        self._is_over = False
        self._thread: threading.Thread | None = None

    def measure(self, tree: LoopTree, threads: int) -> None:
        with self._changed:
            self._next, self._threads = tree, threads
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="loopfleet-local-figures", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Waits for the kernel that runs."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        from ..tensor.backends import local_timer

        timer, made_for = None, 0
        while (task := self._take()) is not None:
            tree, threads = task
            if timer is None or made_for != threads:
                timer, made_for = local_timer(threads), threads
            self._time(timer, tree)

    def _take(self) -> tuple[LoopTree, int] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._next is not None or self._is_over)
            if self._is_over:
                return None
            tree, self._next = self._next, None
            return tree, self._threads

    def _time(self, timer: _core.LocalTimer, tree: LoopTree) -> None:
        try:
            self._deliver(tree.tree_key, timer.best_ns(tree.serialize(), self._budget_ms), "")
        except (LoopfleetError, MemoryError) as error:
            self._deliver(tree.tree_key, None, str(error) or type(error).__name__)
