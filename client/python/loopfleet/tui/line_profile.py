"""LineProfile: which share of the time each line of a tree takes."""

from __future__ import annotations

from collections.abc import Callable

from .._core import LoopTree
from ..client import Client
from ..errors import LoopfleetError
from .proposal import CannotAsk

# The share of each line with all inside it, from 0 to 1, by its number; lines that are not known are missing. Called in
# a thread of its own. Raises LoopfleetError.
LineProfile = Callable[[LoopTree, int], "dict[int, float]"]


def line_profile_of(client: Client | None) -> LineProfile:
    """By a job, if this client can."""

    def ask(tree: LoopTree, threads: int) -> dict[int, float]:
        if client is None:
            raise CannotAsk("lines are profiled by workers, and there is no cluster; --address names one")
        profile = getattr(client, "profile", None)
        if profile is None:
            raise CannotAsk("this client cannot profile lines")
        found = profile(ir=tree.serialize(), threads=threads)
        if not found.ok:
            raise LoopfleetError(f"{found.status}: {found.message}")
        return {line.ref: line.total for line in found.lines if line.part == "node" and line.known}

    return ask
