"""IoThread: owns a client's socket. Other threads pass it jobs, and it passes back outcomes."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import zmq

from . import transport
from ._core import Job, Outcome
from .batch import Batch
from .errors import ClientClosed
from .session import Limits, Session

OnOutcome = Callable[[Outcome], None]
OnError = Callable[[Exception], None]

_LAST_WORD_S = 1.0  # how long a client that is closed waits for the coordinator to confirm what it cancelled


class IoThread(threading.Thread):
    """Only post(), submit() and stop() may be called from other threads."""

    def __init__(self, address: str, keys: Path | None, program: str, limits: Limits):
        super().__init__(name="loopfleet-client", daemon=True)
        self._context = zmq.Context()
        try:
            self._socket = transport.connect(self._context, address, keys)
        except BaseException:
            self._context.term()
            raise
        self._session = Session(address, program, limits)
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)
        self._commands: deque[Callable[[], None]] = deque()
        self._singles: deque[tuple[Job, OnOutcome, OnError]] = deque()
        self._batches: set[Batch] = set()
        self._stopping = False
        self._lock = threading.Lock()
        self.pid = os.getpid()

    # ---- from any thread

    def post(self, command: Callable[[], None]) -> None:
        """Runs ``command`` in the thread; if the thread is ending, before its requests and batches
        fail. ``command`` must not raise."""
        with self._lock:
            if self._stopping:
                raise ClientClosed("the client is closed")
            self._commands.append(command)
        self._wake()

    def submit(self, singles: list[tuple[Job, OnOutcome, OnError]]) -> None:
        """Starts jobs. Those submitted in quick succession form one batch."""
        with self._lock:
            if self._stopping:
                raise ClientClosed("the client is closed")
            self._singles.extend(singles)
        self._wake()

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
        self._wake()

    def _wake(self) -> None:
        try:
            os.write(self._wake_out, b"x")
        except (BlockingIOError, OSError):
            pass  # full: the thread wakes anyway; closed: it has ended

    # ---- in this thread

    @property
    def session(self) -> Session:
        return self._session

    def start_batch(self, jobs: list[Job], on_outcomes: Callable[[list[tuple[int, Outcome]]], None],
                    on_end: Callable[[Exception | None], None]) -> Batch:
        def ended(error: Exception | None) -> None:
            self._batches.discard(batch)
            on_end(error)

        batch = Batch(self._session, time.monotonic, jobs, on_outcomes, ended)
        self._batches.add(batch)
        try:
            batch.start()
        except Exception as unexpected:  # a job that cannot be encoded
            batch._end(unexpected)
        return batch

    def run(self) -> None:
        error: Exception = ClientClosed("the client was closed")
        try:
            self._serve()
        except Exception as unexpected:  # passed on to all waiting calls
            error = unexpected
        finally:
            with self._lock:
                self._stopping = True
            self._run_commands()  # so that their requests fail with the rest
            self._session.fail_all(error)
            for batch in list(self._batches):
                batch._end(error)
            for _, _, on_error in self._singles:
                on_error(error)
            self._singles.clear()
            self._socket.close()
            self._context.term()
            with self._lock:
                os.close(self._wake_in)
                os.close(self._wake_out)
                self._wake_out = self._wake_in = -1

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._wake_in, zmq.POLLIN)
        while not self._stopping:
            self._exchange(poller, 3600.0)
            self._run_commands()
            self._start_singles()
        # A call that ended early may have cancelled its batch right before the client was closed.
        self._run_commands()
        end = time.monotonic() + _LAST_WORD_S
        while any(batch.is_cancelling for batch in self._batches) and (left := end - time.monotonic()) > 0:
            self._exchange(poller, left)

    def _exchange(self, poller: zmq.Poller, longest: float) -> None:
        """Sends and receives. Waits for at most ``longest`` seconds."""
        now = time.monotonic()
        wake_at = self._session.tick(now) if not self._session.idle else now + 3600.0
        self._flush()
        # Unsent messages are sent again soon.
        pause = 0.05 if self._session.outbox else max(0.0, wake_at - now)
        ready = dict(poller.poll(min(pause, longest) * 1000 + 1))
        if self._wake_in in ready:
            try:
                os.read(self._wake_in, 4096)
            except BlockingIOError:
                pass
        self._receive()

    def _run_commands(self) -> None:
        while self._commands:
            self._commands.popleft()()

    def _flush(self) -> None:
        outbox = self._session.outbox
        while outbox:
            try:
                self._socket.send(outbox[0], zmq.NOBLOCK)
            except zmq.Again:
                return
            outbox.popleft()

    def _receive(self) -> None:
        while True:
            try:
                parts = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            if len(parts) == 1:
                self._session.receive(parts[0], time.monotonic())

    def _start_singles(self) -> None:
        with self._lock:
            if not self._singles:
                return
            taken = list(self._singles)
            self._singles.clear()

        waiting = dict(enumerate(taken))

        def on_outcomes(rows: list[tuple[int, Outcome]]) -> None:
            for place, outcome in rows:
                waiting.pop(place)[1](outcome)

        def on_end(error: Exception | None) -> None:
            for _, _, on_error in waiting.values():
                on_error(error or ClientClosed("the batch ended without this job's outcome"))

        self.start_batch([job for job, _, _ in taken], on_outcomes, on_end)
