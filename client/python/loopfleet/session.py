"""Session: the client's side of docs/PROTOCOL.md without a socket or a clock. Numbers the requests
and matches the replies; repeats requests that are unanswered or refused temporarily; says hello
again after a restart. Belongs to one thread."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import _core
from .errors import CoordinatorReplaced, CoordinatorUnavailable, LoopfleetError, Refused

_PASSING = ("BUSY", "QUOTA_EXCEEDED", "STORAGE_FULL", "SHUTTING_DOWN")  # temporary refusals
_SHORTEST_RETRY_S, _LONGEST_RETRY_S = 0.01, 1.0

OnReply = Callable[[str, Any], None]
OnError = Callable[[Exception], None]


@dataclass
class Limits:
    """Time limits, in seconds."""

    connect: float = 10.0  # silence before the first answer
    silence: float = 60.0  # silence later: long enough for a restart
    resend: float = 1.0    # a request unanswered for this long is repeated
    busy: float = 600.0    # temporary refusals


@dataclass
class _Pending:
    frame: bytes
    expected: float  # seconds that the reply may take by design
    since: float
    due: float       # when it is sent again
    on_reply: OnReply
    on_error: OnError
    unanswered: int = 1  # times sent and not replied to
    refusal: str = ""    # the last temporary one


class Session:
    def __init__(self, address: str, program: str, limits: Limits):
        self.address = address
        self.limits = limits
        self.client_id = os.urandom(16)
        self.outbox: deque[bytes] = deque()
        self.epoch = 0  # of the coordinator; 0: not connected yet
        self.minor = 0  # of the coordinator's protocol version, as of the last welcome
        self.coordinator = ""
        self._incarnation = bytes(16)  # of its database; zeros: not told yet
        self._replaced: CoordinatorReplaced | None = None
        self._program = program
        self._number = 0
        self._hellos: set[int] = set()
        self._hello_since: float | None = None
        self._hello_after = 0.0  # no hello before this time, after a temporary refusal
        self._heard_at: float | None = None
        self._pending: dict[int, _Pending] = {}

    def request(self, encode: Callable[[int], bytes], now: float, on_reply: OnReply, on_error: OnError,
                expected: float = 0.0) -> int:
        """Sends a request. ``encode`` makes the frame from the request's number, which is
        returned."""
        if self.epoch == 0 and self._hello_since is None:
            self._greet(now)
        self._number += 1
        if self._replaced is not None:
            on_error(self._replaced)
            return self._number
        frame = encode(self._number)
        self._pending[self._number] = _Pending(frame, expected, now, now + expected + self.limits.resend, on_reply,
                                               on_error)
        self.outbox.append(frame)
        return self._number

    def when_welcome(self, now: float, on_welcome: Callable[[], None], on_error: OnError) -> int:
        """Calls ``on_welcome`` once the coordinator has said its version. Returns the number of the request that waits for
        it; 0: it has."""
        def on_reply(kind: str, content: Any) -> None:
            if kind == "welcome":
                self._on_hello(kind, content, now)
                on_welcome()
            else:
                on_error(_refusal(content) if kind == "refused" else
                         LoopfleetError(f"the coordinator answered a hello with '{kind}'"))

        if self.epoch:
            on_welcome()
            return 0
        return self.request(lambda number: _core.encode_hello(number, self.client_id, self._program), now, on_reply, on_error)

    def last_refusal(self, number: int) -> str:
        """The last temporary refusal of a request that has no other answer yet; "": there is none. From any thread."""
        pending = self._pending.get(number)
        return "" if pending is None else pending.refusal

    def withdraw(self, number: int) -> bool:
        """Drops a request to which every reply was a temporary refusal. False: it may still be
        executed."""
        pending = self._pending.get(number)
        if pending is None or pending.unanswered > 0:
            return False
        del self._pending[number]
        return True

    def receive(self, frame: bytes, now: float) -> None:
        self._heard_at = now
        try:
            number, kind, content = _core.decode_reply(frame)
        except _core.JobError as error:
            # The request that it answers is unknown, so all fail.
            self.fail_all(LoopfleetError(f"the answer from {self.address} cannot be read: {error}; is this a coordinator's "
                                         "address for clients?"))
            return
        if number in self._hellos:
            self._hellos.discard(number)
            self._on_hello(kind, content, now)
            return
        if number == 0 and self._pending:  # the coordinator could not read the number, so it means the latest
            number = max(self._pending)
        pending = self._pending.get(number)
        if pending is None:
            return  # a duplicate reply
        pending.unanswered = max(0, pending.unanswered - 1)
        if kind == "refused" and content[0] == "UNAUTHENTICATED":
            # A restarted coordinator needs a hello first.
            if now < self._hello_after:
                pending.due = self._hello_after
            elif self._hello_since is None:
                self._greet(now)
                self._say(pending, now)
            return
        if kind == "refused" and content[0] in _PASSING and now < pending.since + self.limits.busy:
            pending.due = now + _pause(content[3])
            pending.refusal = str(_refusal(content))
            return
        del self._pending[number]
        pending.on_reply(kind, content)

    def tick(self, now: float) -> float:
        """Repeats unanswered requests and fails those unanswered for too long. Returns when to
        call it again."""
        soonest = now + 1.0
        for number, pending in list(self._pending.items()):
            patience = self.limits.silence if self.epoch else self.limits.connect
            since = max(pending.since, self._heard_at or 0.0)
            if now - since > pending.expected + patience:
                del self._pending[number]
                pending.on_error(CoordinatorUnavailable(
                    f"no answer from the coordinator at {self.address} for {patience:.3g} s; is it running? "
                    "`loopfleet local` and `with loopfleet.LocalCluster():` start a cluster, LOOPFLEET_ADDRESS names another"))
                continue
            if now >= pending.due:
                if pending.unanswered:
                    self._greet(now)  # the coordinator may have restarted
                self._say(pending, now)
            soonest = min(soonest, pending.due)
        return soonest

    def fail_all(self, error: Exception, since_before: float = math.inf) -> None:
        """Fails the requests made no later than ``since_before``."""
        failed = {number: each for number, each in self._pending.items() if each.since <= since_before}
        self._pending = {number: each for number, each in self._pending.items() if number not in failed}
        for each in failed.values():
            each.on_error(error)

    @property
    def idle(self) -> bool:
        return not self._pending

    def _say(self, pending: _Pending, now: float) -> None:
        self.outbox.append(pending.frame)
        pending.due = now + pending.expected + self.limits.resend
        pending.unanswered += 1

    def _greet(self, now: float) -> None:
        if now < self._hello_after:
            return
        if self._hello_since is not None and now - self._hello_since < self.limits.resend / 2:
            return  # sent just now
        self._number += 1
        self._hello_since = now
        self._hellos.add(self._number)
        self.outbox.append(_core.encode_hello(self._number, self.client_id, self._program))

    def _on_hello(self, kind: str, content: Any, now: float) -> None:
        self._hello_since = None
        if kind == "welcome":
            self.coordinator, self.epoch, incarnation, self.minor = content
            if not any(self._incarnation):
                self._incarnation = incarnation
            elif any(incarnation) and incarnation != self._incarnation:
                self._replaced = CoordinatorReplaced(
                    f"the database of the coordinator at {self.address} was replaced, probably by a restored "
                    "snapshot: batches submitted after the snapshot are gone; make a new client")
                self.fail_all(self._replaced)
        elif kind == "refused":
            passes = content[0] in _PASSING
            if passes:
                self._hello_after = now + _pause(content[3])
                for each in self._pending.values():
                    each.refusal = str(_refusal(content))
            self.fail_all(_refusal(content), since_before=now - self.limits.busy if passes else math.inf)


def _refusal(content: Any) -> Refused:
    code, message, _, retry_after_ms, retryable = content
    return Refused(code, message, retryable, retry_after_ms)


def _pause(retry_after_ms: int) -> float:
    return min(max(retry_after_ms / 1000, _SHORTEST_RETRY_S), _LONGEST_RETRY_S)
