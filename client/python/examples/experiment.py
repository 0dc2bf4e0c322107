"""What dqn.py, ppo.py and distributed_dqn.py have in common: environments to train on, and the command that trains an
agent, races it and reports."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gymnasium.vector import AutoresetMode
from race import matmuls, race, report

import loopfleet
from loopfleet.envs import LoopTuneEnv, WalkVectorEnv
from loopfleet.models.training import Returns, random_policy


def environments(client: loopfleet.Client, benchmarks: Sequence[str], num_envs: int) -> WalkVectorEnv:
    return WalkVectorEnv(num_envs, env_class=LoopTuneEnv, autoreset_mode=AutoresetMode.SAME_STEP, client=client,
                         benchmarks=benchmarks, action_space="looptune", reward_space="log_speedup")


def say(text: str) -> None:
    print(text, flush=True)


Train = Callable[[loopfleet.Client, list[str], int], tuple[Any, Returns]]


def parser(title: str, about: str | None) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--steps", type=int, default=16_000, help="of training")
    made.add_argument("--held-out", type=int, default=25, help="matmuls of LoopTune's test set to be judged on")
    made.add_argument("--evaluations", type=int, default=40, help="of each racer on each")
    made.add_argument("--seeds", type=int, default=3)
    made.add_argument("--out", type=Path, default=Path(title.lower().replace(" ", "_")), help="OUT.png and OUT.json")
    return made


def run(title: str, train: Train, about: str | None) -> None:
    """The command. ``train(client, benchmarks, steps)`` gives an agent, and how it went."""
    run_given(title, train, parser(title, about).parse_args())


def run_given(title: str, train: Train, given: argparse.Namespace, known: dict[str, Any] | None = None) -> None:
    """``known``: facts for OUT.json besides those of the training and the race."""
    import torch

    torch.set_num_threads(1)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    train_on, held_out = matmuls(24, given.held_out)
    with loopfleet.LocalCluster(workers=1), loopfleet.Client() as client:
        agent, returns = train(client, train_on, given.steps)
        facts = {"training_steps": returns.steps, "training_seconds": round(returns.seconds)}
        result = race(client, {title: agent.policy(), "random search": random_policy}, held_out, given.evaluations,
                      given.seeds)
    report(result, returns.curve, title, given.out, {**facts, **(known or {})})
