"""PassState: a program after some LLVM passes, as a policy sees it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import _core
from .program_graph import ProgramGraph

_INST_COUNTS = len(_core.pass_number_names("InstCount"))


@dataclass(frozen=True)
class PassState:
    """What a policy sees after some passes."""

    counts: np.ndarray          # float32[PassState.width(number of actions)]
    graph: ProgramGraph | None  # None: the policy decides by the counts

    @staticmethod
    def width(actions: int) -> int:
        """Numbers in the counts of a state, where a policy chooses among so many actions."""
        return _INST_COUNTS + 3 + actions

    @classmethod
    def of(cls, inst_count: np.ndarray, start: int, passes: Sequence[int], actions: int, steps: int,
           graph: ProgramGraph | None) -> PassState:
        """``inst_count``: the observation InstCount, whose first number is the instructions, of which there were
        ``start`` before any pass. ``passes``: numbers of actions so far, of ``steps`` in an episode.

        The counts are InstCount as shares of the instructions; the logarithm of how many are left, their number
        and the place in the episode; and how often each action was taken, scaled."""
        inst_count = np.asarray(inst_count, np.float32)
        instructions = max(inst_count[0], 1)
        facts = [math.log(instructions / max(start, 1)), math.log(instructions) / 10, len(passes) / steps]
        taken = np.bincount(np.asarray(passes, np.int64), minlength=actions) / 4
        return cls(np.concatenate((inst_count / instructions, facts, taken)).astype(np.float32), graph)
