"""Proposal: a tree that others found, shown before it is taken; and who gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._core import LoopTree
from ..client import Client
from ..errors import LoopfleetError


@dataclass(frozen=True)
class Proposal:
    tree: LoopTree
    gflops: float
    grade: str  # "" of a figure without
    origin: str  # "fleet best, node7, 2026-05-01", "search, 212 trees"


class CannotAsk(LoopfleetError):
    """There is nothing that could answer; the message says why."""


# The best known trees of a tree's program for so many threads, the quickest first; none: []. Called in a thread of its
# own. Raises LoopfleetError.
FleetBest = Callable[[LoopTree, int], "list[Proposal]"]


def fleet_best_of(client: Client | None) -> FleetBest:
    """Asks the coordinator, if the client can: client.find_best(tree, threads=, limit=) gives (tree, GFLOP/s, grade,
    where and when) of each."""

    def ask(tree: LoopTree, threads: int) -> list[Proposal]:
        if client is None:
            raise CannotAsk("there is no cluster to ask for the best known schedule; --address names one")
        find_best = getattr(client, "find_best", None)
        if find_best is None:
            raise CannotAsk("this client cannot ask for the best known schedule")
        return [Proposal(found, gflops, grade, f"fleet best, {where}")
                for found, gflops, grade, where in find_best(tree, threads=threads, limit=5)]

    return ask
