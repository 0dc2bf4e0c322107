"""LocalFigures: times the newest tree in this process, in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable

from .. import _core
from .._core import LoopTree
from ..errors import LoopfleetError
from .newest import Newest

# deliver(tree key, nanoseconds of a run or None, the failure's text or "")
Deliver = Callable[[str, "float | None", str], None]


class LocalFigures:
    """``deliver`` is called in this class's thread. A tree that another one follows before its turn is dropped."""

    def __init__(self, deliver: Deliver, budget_ms: float = 10):
        self._deliver = deliver
        self._budget_ms = budget_ms
        self._timer: _core.LocalTimer | None = None
        self._made_for = 0  # threads
        self._tasks = Newest("loopfleet-local-figures", self._time)

    def measure(self, tree: LoopTree, threads: int) -> None:
        self._tasks.put((tree, threads))

    def close(self) -> None:
        """Waits for the kernel that runs."""
        self._tasks.close()

    def _time(self, task: tuple[LoopTree, int]) -> None:
        from ..tensor.backends import local_timer

        tree, threads = task
        try:
            if self._timer is None or self._made_for != threads:
                self._timer, self._made_for = local_timer(threads), threads
            self._deliver(tree.tree_key, self._timer.best_ns(tree.serialize(), self._budget_ms), "")
        except (LoopfleetError, MemoryError) as error:
            self._deliver(tree.tree_key, None, str(error) or type(error).__name__)
