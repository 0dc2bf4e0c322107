"""Newest: a thread that works on the newest of what it is given; what is older is dropped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Newest(Generic[T]):
    """``work`` is called in the thread, with one task at a time."""

    def __init__(self, name: str, work: Callable[[T], None]):
        self._name = name
        self._work = work
        self._next: list[T] = []  # one or none
        self._changed = threading.Condition()
        self._is_over = False
        self._thread: threading.Thread | None = None

    def put(self, task: T) -> None:
        with self._changed:
            self._next = [task]
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Waits for the task that is under way."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._next or self._is_over)
                if self._is_over:
                    return
                task = self._next.pop()
            self._work(task)
