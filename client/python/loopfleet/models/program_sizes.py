"""How large programs are, by a fleet."""

from __future__ import annotations

from collections.abc import Sequence

from ..client import Client

_TIMEOUT_S = 600.0  # for all programs together


def instruction_counts(client: Client, programs: Sequence[str], observe: str = "IrInstructionCount") -> dict[str, int]:
    """Instructions of each of ``programs`` (URIs), without those that cannot be had. ``observe``: IrInstructionCount
    without passes; IrInstructionCountO0, O3 or Oz after those of the level."""
    outcomes = client.evaluate_many([{"benchmark": uri, "observe": [observe]} for uri in programs],
                                    timeout=_TIMEOUT_S).outcomes
    return {uri: int(outcome.observed[observe]) for uri, outcome in zip(programs, outcomes) if outcome.ok}
