"""PassTrajectory: an episode of LLVM passes as a policy chose them, with what a learner needs of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from .pass_state import PassState


@dataclass
class PassTrajectory:
    """Passes on one program, with what was seen and predicted before each. PassRollouts writes it."""

    benchmark: str           # the program's URI
    with_graph: bool = True  # false: the policy sees counts alone
    begun_with: int = 0      # updates of the policy before the first pass
    passes: list[int] = field(default_factory=list)        # numbers of the agent's actions
    sizes: list[int] = field(default_factory=list)         # instructions at the start and after each pass that worked
    states: list[PassState] = field(default_factory=list)  # likewise
    log_probabilities: list[float] = field(default_factory=list)  # of each pass, when it was drawn
    values: list[float] = field(default_factory=list)      # the value of the state before each pass, as predicted
    saw_graphs: int = 0      # states with a graph
    broke: bool = False      # the last pass failed, which ended the episode

    def best(self) -> tuple[list[int], int]:
        """(the passes up to the first state with the fewest instructions, those instructions)"""
        fewest = min(self.sizes)
        return self.passes[:self.sizes.index(fewest)], fewest

    def rewards(self) -> list[float]:
        """Of each pass: ln(instructions before it / after it); 0 for one that failed."""
        gained = [math.log(max(before, 1) / max(after, 1)) for before, after in zip(self.sizes, self.sizes[1:])]
        return gained + [0.0] * (len(self.passes) - len(gained))

    def advantages(self, gamma: float, decay: float) -> list[float]:
        """Of each pass: how much more it earned than its state promised, by generalized advantage estimation with the
        discount ``gamma`` and the trace's ``decay``. After the last pass nothing more is to be earned."""
        rewards, values = self.rewards(), [*self.values, 0.0]
        advantages, last = [0.0] * len(rewards), 0.0
        for t in reversed(range(len(rewards))):
            last = rewards[t] + gamma * values[t + 1] - values[t] + gamma * decay * last
            advantages[t] = last
        return advantages
