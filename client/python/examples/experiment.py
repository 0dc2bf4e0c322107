"""What ppo.py and dqn.py have in common: environments to train on, the curve of what they return, and the command
that trains an agent, races it and reports."""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from race import Policy, matmuls, race, random_policy, report
from torch import nn

import loopfleet
from loopfleet.envs import LoopTuneEnv, WalkVectorEnv


def environments(client: loopfleet.Client, benchmarks: Sequence[str], num_envs: int) -> WalkVectorEnv:
    return WalkVectorEnv(num_envs, env_class=LoopTuneEnv, autoreset_mode=AutoresetMode.SAME_STEP, client=client,
                         benchmarks=benchmarks, action_space="looptune", reward_space="log_speedup")


def squash(observations: torch.Tensor) -> torch.Tensor:
    """Features count loops, sizes and strides: from 0 to a million."""
    return torch.sign(observations) * torch.log1p(observations.abs())


class Returns:
    """Of the episodes of ``num_envs`` environments, as training goes on."""

    def __init__(self, num_envs: int):
        self.steps = 0
        self.curve: list[tuple[int, float]] = []  # steps, mean of recent episodes
        self._recent: deque[float] = deque(maxlen=100)
        self._running = np.zeros(num_envs)
        self._since = time.monotonic()

    def add(self, rewards: np.ndarray, over: np.ndarray) -> None:
        """One step of all environments."""
        self._running += rewards
        self._recent.extend(self._running[over])
        self._running[over] = 0
        self.steps += len(rewards)

    def mark(self, said: str = "") -> None:
        """A point of the curve."""
        if self._recent:
            self.curve.append((self.steps, float(np.mean(self._recent))))
            print(f"{time.monotonic() - self._since:5.0f} s, {self.steps:6} steps{said}: return {self.curve[-1][1]:.3f}",
                  flush=True)

    def facts(self) -> dict[str, int]:
        return {"training_steps": self.steps, "training_seconds": round(time.monotonic() - self._since)}


def run(title: str, train: Callable[[loopfleet.Client, list[str], int], tuple[nn.Module, Returns]],
        policy_of: Callable[[nn.Module], Policy], about: str | None) -> None:
    """The command. ``train(client, benchmarks, steps)`` gives what ``policy_of`` makes a racer of."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=16_000, help="of training")
    parser.add_argument("--held-out", type=int, default=8, help="matmuls to be judged on")
    parser.add_argument("--evaluations", type=int, default=40, help="of each racer on each")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(title.lower()), help="OUT.png and OUT.json")
    given = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    train_on, held_out = matmuls(24, given.held_out)
    with loopfleet.LocalCluster(workers=1), loopfleet.Client() as client:
        agent, returns = train(client, train_on, given.steps)
        facts = returns.facts()
        result = race(client, {title: policy_of(agent), "random search": random_policy}, held_out, given.evaluations,
                      given.seeds)
    report(result, returns.curve, title, given.out, facts)
