"""What a fleet observes of programs before any pass, such as how large they are."""

from __future__ import annotations

from collections.abc import Sequence

from .._core import Outcome
from ..client import Client
from .errors import ModelError

_TIMEOUT_S = 600.0  # for all programs together


def observe_programs(client: Client, programs: Sequence[str], observe: str) -> dict[str, Outcome]:
    """The outcome of each of ``programs`` (URIs), once if one is there twice. ModelError: it is no list."""
    if isinstance(programs, str):
        raise ModelError(f"programs are a list of URIs, not the string {programs}")
    programs = list(dict.fromkeys(programs))
    return dict(zip(programs, client.evaluate_many([{"benchmark": uri, "observe": [observe]} for uri in programs],
                                                   timeout=_TIMEOUT_S).outcomes))


def instruction_counts(client: Client, programs: Sequence[str], observe: str = "IrInstructionCount") -> dict[str, int]:
    """Instructions of each of ``programs`` (URIs), without those that cannot be had (INVALID_BENCHMARK). ``observe``:
    IrInstructionCount without passes; IrInstructionCountO0, O3 or Oz after those of the level; IrInstructionCountOzAttr
    after minsize and optsize on every function and Oz. ModelError: any other failure, or ``programs`` is no list."""
    counts = {}
    for uri, outcome in observe_programs(client, programs, observe).items():
        if outcome.ok:
            counts[uri] = int(outcome.observed[observe])
        elif outcome.status != "INVALID_BENCHMARK":
            raise ModelError(f"{uri}: {outcome.status}: {outcome.message}")
    return counts
