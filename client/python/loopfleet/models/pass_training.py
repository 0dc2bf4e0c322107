"""Trains a PassAgent over a fleet. Episodes run on while the agent learns from those that have ended."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..client import Client
from .errors import ModelError
from .pass_agent import PassAgent
from .pass_rollouts import PassRollouts
from .pass_trajectory import PassTrajectory


@dataclass(frozen=True)
class PassUpdate:
    """An update of a training, and the episodes that it learned from."""

    updates: int    # so far, with this one
    steps: int      # passes learned from so far
    seconds: float  # since the training began
    entropy: float  # of the policy, in nats
    episodes: list[PassTrajectory]

    def facts(self) -> dict[str, float]:
        """For a curve, as JSON has it: ``updates``, ``steps``, ``seconds`` and ``entropy``; of the episodes, the mean
        ``return``, the mean ``lag`` (updates between an episode's beginning and this one) and how many ``broke``."""
        return {"updates": self.updates, "steps": self.steps, "seconds": round(self.seconds, 1),
                "return": float(np.mean([sum(each.rewards()) for each in self.episodes])),
                "lag": float(np.mean([self.updates - 1 - each.begun_with for each in self.episodes])),
                "broke": sum(each.broke for each in self.episodes), "entropy": self.entropy}


def train_pass_agent(agent: PassAgent, client: Client, programs: Sequence[str], steps: int, *,
                     seconds: float = math.inf, episode_steps: int = 20, width: int = 24, batch: int = 600,
                     most_lag: int = 4, graph_share: float = 0.9, most_instructions: int = 6_000, seed: int = 1,
                     on_update: Callable[[PassUpdate], Any] | None = None) -> None:
    """Until the agent has learned from ``steps`` passes, or for ``seconds``.

    ``width`` episodes of ``episode_steps`` passes run side by side, each on one of ``programs`` (URIs), which ``seed``
    chooses. The share ``graph_share`` of them has graphs, if not of more than ``most_instructions`` instructions: so
    the agent also learns to do without. An update waits for ``batch`` passes of episodes that have ended; those begun
    more than ``most_lag`` updates ago are left out. ``on_update`` is called after each.

    ModelError: there are no programs, one cannot be had, or a number is too small. The client's errors
    (loopfleet.errors) end the training as well.
    """
    if not programs or isinstance(programs, str):
        raise ModelError("a training needs a list of programs")
    if min(steps, width, batch) < 1:
        raise ModelError(f"steps, width and batch must be at least 1, not {steps}, {width} and {batch}")
    if most_lag < 0:
        raise ModelError(f"most_lag must be at least 0, not {most_lag}")
    random = np.random.default_rng(seed)
    rollouts = PassRollouts(client, agent, episode_steps=episode_steps, most_instructions=most_instructions)
    ready: list[PassTrajectory] = []
    updates, learned, since = 0, 0, time.monotonic()

    def begin() -> None:
        rollouts.begin(programs[int(random.integers(len(programs)))], with_graph=random.random() < graph_share,
                       begun_with=updates)

    try:
        for _ in range(width):
            begin()
        while learned < steps and time.monotonic() - since < seconds:
            for ended in rollouts.step():
                begin()
                if updates - ended.begun_with <= most_lag:
                    ready.append(ended)
            if (waiting := sum(len(each.passes) for each in ready)) >= batch:
                entropy = agent.update(ready)
                updates += 1
                learned += waiting
                if on_update is not None:
                    on_update(PassUpdate(updates, learned, time.monotonic() - since, entropy, ready))
                ready = []
    finally:
        rollouts.abandon()
