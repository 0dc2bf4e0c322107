"""BackgroundSearch: the search of `loopfleet search` beside the editor, at low priority."""

from __future__ import annotations

import threading
from collections.abc import Callable

from .._core import LoopTree, Walk
from ..client import Client
from ..errors import LoopfleetError
from ..schedule_search import Progress, search
from .proposal import CannotAsk, Proposal

_PRIORITY = -10  # below the jobs of the editor, which have the same client
_IN_FLIGHT = 16  # so that it ends soon when it is stopped
_LONGEST_S = 24 * 3600.0
_PATIENCE_S = 5.0

# deliver(trees so far, seconds, the best so far or None, whether it goes on, why it failed or "")
Deliver = Callable[[int, float, "Proposal | None", bool, str], None]


class BackgroundSearch:
    """From one tree on, in a thread of its own, which calls ``deliver`` until it is stopped. Its jobs carry no affinity:
    any worker may run them."""

    def __init__(self, client: Client | None, deliver: Deliver):
        self._client = client
        self._deliver = deliver
        self._stopped = threading.Event()  # of the search that runs
        self._thread: threading.Thread | None = None

    def start(self, tree: LoopTree, threads: int) -> None:
        """CannotAsk: there is no cluster."""
        if self._client is None:
            raise CannotAsk("the search measures on workers, and there is no cluster; --address names one")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(tree.serialize(), threads, self._stopped),
                                        name="loopfleet-search", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Its thread ends once the figures under way are there."""
        self._stopped.set()

    def close(self) -> None:
        """Waits a little for that."""
        self.stop()
        if self._thread is not None:
            self._thread.join(_PATIENCE_S)

    def _run(self, start: str, threads: int, stopped: threading.Event) -> None:
        last: list[Progress] = [Progress(0, 0, None, None, 0)]

        def tell(is_running: bool, failure: str = "") -> None:
            progress = last[0]
            if not stopped.is_set():
                self._deliver(progress.evaluations, progress.seconds, _proposal(start, progress), is_running, failure)

        def watch(progress: Progress) -> bool:
            last[0] = progress
            tell(True)
            return not stopped.is_set()

        try:
            search(ir=start, seconds=_LONGEST_S, client=self._client, in_flight=_IN_FLIGHT, confirm=False, watch=watch,
                   priority=_PRIORITY, threads=threads)
        except LoopfleetError as error:
            tell(False, str(error))
        else:
            tell(False)


def _proposal(start: str, progress: Progress) -> Proposal | None:
    if progress.best_actions is None or not progress.best_ns:
        return None
    walk = Walk(ir=start)
    for action in progress.best_actions:
        walk.apply(action)
    return Proposal(LoopTree(walk.observe("ir")), progress.flop_count / progress.best_ns, "",
                    f"search, {progress.evaluations} trees")
