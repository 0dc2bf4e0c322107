"""What DQN and PPO share: a trained agent proposes schedules."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from .._core import Walk, full_uri
from .errors import ModelError
from .mlp import legal_best
from .training import Policy

_LAYOUT = "agent58"
_ROW_WIDTH = 58
_STEPS = 10     # of an episode of LoopTune-v0
_TRIES = 20     # walks for each schedule asked for: an agent that is sure of its walk ends at few trees


class ScheduleAgent(ABC):
    """Trained in LoopTune-v0, it proposes schedules of a program without measuring any: the trees
    at which its walks end.

        agent.propose("mm-v0/mm128_160_224", 4)
        loopfleet.search("mm-v0/mm128_160_224", start=agent, evaluations=10)
    """

    features: int
    actions: list[str]

    @abstractmethod
    def policy(self) -> Policy:
        """Draws actions."""

    @abstractmethod
    def liking(self, observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """float[rows, actions]: the higher, the better it likes a legal action; as act()'s
        arguments."""

    def propose(self, benchmark: str | None = None, count: int = 1, *, ir: str | None = None,
                seed: int = 0) -> list[list[str]]:
        """Up to ``count`` lists of legal actions (rules "structural") that lead to different trees:
        the walk that it likes best at each step, then walks that it draws. ModelError: it was
        trained on other observations; JobError: a bad benchmark."""
        if self.features % _ROW_WIDTH:
            raise ModelError(f"the agent sees {self.features} numbers, which are no loops_tensor of {_LAYOUT}: only agents "
                             "of LoopTune-v0 propose schedules")
        start = Walk(benchmark=full_uri(benchmark) if benchmark else "", ir=ir or "", action_space=self.actions,
                     features=_LAYOUT)
        rng, drawn = np.random.default_rng(seed), self.policy()
        found: dict[bytes, list[str]] = {}
        for number in range(_TRIES * count):
            walk = _walked(start.copy(), drawn if number else self._greedy, self.features // _ROW_WIDTH, rng)
            found.setdefault(walk.tree_key, walk.history)
            if len(found) == count:
                break
        return list(found.values())

    def start_for(self, benchmark: str | None, ir: str | None) -> list[list[str]]:
        """What loopfleet.search measures first: four proposals."""
        return self.propose(benchmark, 4, ir=ir)

    def _greedy(self, observation: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> int:
        masks = mask[None].astype(bool)
        return int(legal_best(self.liking(observation[None], masks), masks)[0])


def _walked(walk: Walk, act: Policy, loops: int, rng: np.random.Generator) -> Walk:
    for _ in range(_STEPS):
        mask = walk.mask()
        if not mask.any():
            break
        walk.step(act(walk.loops_tensor(loops), mask, rng))
    return walk
