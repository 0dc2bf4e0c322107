"""Proposal: a tree from the fleet or from a search, shown before it is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import _core
from .._core import LoopTree, Outcome
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


# The fastest known trees of a tree's program for so many threads, on workers of a hardware class ("": any), the fastest
# first; none: []. Called in a thread of its own. Raises LoopfleetError.
FleetBest = Callable[[LoopTree, int, str], "list[Proposal]"]


def fleet_best_of(client: Client | None) -> FleetBest:
    """Asks the coordinator, if this client can."""

    def ask(tree: LoopTree, threads: int, hardware_class: str) -> list[Proposal]:
        if client is None:
            raise CannotAsk("there is no cluster to ask for the best known schedule; --address names one")
        find_best = getattr(client, "find_best", None)
        if find_best is None:
            raise CannotAsk("this client cannot ask for the best known schedule")
        return [_proposal(best.tree, best.outcome)
                for best in find_best(tree, threads=threads, hardware_class=hardware_class, limit=1)]

    return ask


def _proposal(tree: LoopTree, outcome: Outcome) -> Proposal:
    day = _core.iso_time(outcome).partition("T")[0]
    return Proposal(tree, outcome.gflops, outcome.grade, f"fleet best, {outcome.worker}, {day}")
