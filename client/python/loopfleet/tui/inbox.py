"""Inbox: answers of other threads, which the editor's own thread takes."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from ..errors import LoopfleetError


class Inbox:
    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.wake: Callable[[], None] = lambda: None  # called by the other threads when something came

    def post(self, handler: Callable[..., None]) -> Callable[..., None]:
        """A function for other threads; the owner's pump() calls ``handler`` with its arguments."""

        def put(*arguments: Any) -> None:
            self._calls.put(lambda: handler(*arguments))
            self.wake()

        return put

    def ask(self, work: Callable[[], Any], on_answer: Callable[[Any], None], on_error: Callable[[str], None]) -> None:
        """Does ``work`` in a thread; its answer or the text of its LoopfleetError comes in here."""
        answered, failed = self.post(on_answer), self.post(on_error)

        def run() -> None:
            try:
                answer = work()
            except LoopfleetError as error:
                failed(str(error))
            except Exception as error:  # shown there, where a traceback would spoil the screen
                failed(f"{type(error).__name__}: {error}")
            else:
                answered(answer)

        threading.Thread(target=run, name="loopfleet-editor-ask", daemon=True).start()

    def pump(self, timeout: float = 0) -> bool:
        """Handles what came, in the owner's thread; waits for the first so long. False: nothing came."""
        deadline = time.monotonic() + timeout
        handled = False
        while True:
            try:
                call = self._calls.get(timeout=max(0.0, 0 if handled else deadline - time.monotonic()))
            except (queue.Empty, ValueError):
                return handled
            call()
            handled = True
