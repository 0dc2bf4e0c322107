"""Profiling: the share of each line of the tree that is edited."""

from __future__ import annotations

import threading
from collections.abc import Callable

from .._core import LoopTree
from .inbox import Inbox
from .line_profile import LineProfile

REST_S = 1.0


class Profiling:
    """Asked for by ask(), and from then on of each tree that stays for REST_S, until a profile fails. One thread owns
    it; shares arrive by the inbox. ``say`` and ``refuse`` are called with what is to be told."""

    def __init__(self, profile: LineProfile, inbox: Inbox, say: Callable[[str], None], refuse: Callable[[str], None]):
        self.shares: dict[int, float] = {}  # of the lines of the tree that is shown
        self._profile = profile
        self._inbox = inbox
        self._say = say
        self._refuse = refuse
        self._subject: tuple[LoopTree, int] | None = None  # the tree that is shown, and threads
        self._goes_on = False
        self._rest: threading.Timer | None = None

    def show(self, tree: LoopTree, threads: int) -> None:
        """This tree instead of the one before."""
        self.shares = {}
        self._subject = subject = tree, threads
        self._cancel_rest()
        if self._goes_on:
            self._rest = threading.Timer(REST_S, self._inbox.post(lambda: self._start(subject, is_asked=False)))
            self._rest.daemon = True
            self._rest.start()

    def ask(self) -> None:
        """Of the tree that is shown, now."""
        self._cancel_rest()
        self._goes_on = True
        self._say("profiling ...")
        self._start(self._subject, is_asked=True)

    def close(self) -> None:
        self._cancel_rest()
        self._subject = None  # the rest may be over already

    def _cancel_rest(self) -> None:
        if self._rest is not None:
            self._rest.cancel()

    def _start(self, subject: tuple[LoopTree, int] | None, is_asked: bool) -> None:
        if subject is not self._subject or subject is None:
            return  # another tree is shown meanwhile, or none

        def on_shares(shares: dict[int, float]) -> None:
            if is_asked:
                self._say("")
            if subject is self._subject:
                self.shares = shares

        def on_failure(problem: str) -> None:
            self._goes_on = False
            self._refuse(problem)

        self._inbox.ask(lambda: self._profile(*subject), on_shares, on_failure)
