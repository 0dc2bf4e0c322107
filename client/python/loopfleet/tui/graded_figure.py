"""GradedFigures: has the tree that is edited measured by a worker, as a job of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .._core import LoopTree, Outcome
from ..client import Client
from ..jobs import make_jobs

_PRIORITY = 10  # before the search's jobs, which are of the same client

# deliver(tree key, outcome or None, why there is none or "")
Deliver = Callable[[str, "Outcome | None", str], None]


class GradedFigures:
    """One tree at a time: when the next one comes, the job of the one before is cancelled, unless it ran already.
    All jobs of a session have one affinity, so one worker measures them. ``deliver`` is called in the client's
    thread."""

    def __init__(self, client: Client, deliver: Deliver, fields: dict[str, Any] | None = None):
        self._client = client
        self._deliver = deliver
        self._fields = {"affinity": f"editor-{os.urandom(8).hex()}", "priority": _PRIORITY, **(fields or {})}
        self._cancel: Callable[[], None] = lambda: None

    def measure(self, tree: LoopTree, threads: int, fresh: bool) -> None:
        """``fresh``: a stored result does not answer."""
        self._cancel()
        key = tree.tree_key
        is_current = [True]
        jobs, _, failed = make_jobs([{**self._fields, "ir": tree.serialize(), "threads": threads, "fresh": fresh}])
        if failed:
            self._deliver(key, failed[0][1], "")
            return

        def put(item: Any) -> None:
            if not is_current[0]:
                return
            if isinstance(item, list):
                for _, outcome in item:
                    self._deliver(key, outcome, "")
            elif item is not None:
                self._deliver(key, None, str(item))

        following = self._client._follow(jobs, put)

        def leave() -> None:
            is_current[0] = False
            following.cancel()

        self._cancel = leave

    def close(self) -> None:
        self._cancel()
        self._cancel = lambda: None
