"""CompilerGym's leaderboard of instruction counts: how a policy does on every program of a test set.

    from loopfleet.compiler_gym.leaderboard.llvm_instcount import eval_llvm_instcount_policy

    def policy(env):
        env.step(env.action_space["-mem2reg"])

    if __name__ == "__main__":
        eval_llvm_instcount_policy(policy)
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...envs.state import HEADER, EnvState, ValidationResult
from .. import make

Policy = Callable[[Any], None]


def eval_llvm_instcount_policy(policy: Policy, *, benchmarks: Iterable[str] | None = None, runs: int | None = None,
                               results: str | None = None, validate: bool | None = None,
                               arguments: Sequence[str] | None = None, **options: Any) -> list[EnvState]:
    """Lets ``policy(env)`` step ``llvm-ic-v0`` on each program ``runs`` times, and writes a row of
    benchmark, reward (the episode's), walltime and commandline for each to ``results``. Prints the
    geometric mean of the rewards, which is the leaderboard's figure, without the programs that -Oz does not
    make smaller, which it names; 0 if a reward is not positive. What is not given comes from the command
    line. ``options`` are make()'s. RuntimeError: a state does not validate."""
    parser = argparse.ArgumentParser(description="Evaluates a policy on a data set of programs.")
    parser.add_argument("--n", type=int, default=10, help="runs of each program")
    parser.add_argument("--test_dataset", default="benchmark://debian-v0")
    parser.add_argument("--leaderboard_results", default="llvm_instcount-results.csv")
    parser.add_argument("--novalidate", action="store_true", help="do not run the passes again at the end")
    parsed = parser.parse_args(arguments if any(each is None for each in (benchmarks, runs, results, validate)) else [])
    env = make("llvm-ic-v0", **options)
    chosen = list(benchmarks if benchmarks is not None else env.datasets[parsed.test_dataset].benchmark_uris())
    states = []
    degenerate: set[str] = set()
    with open(results or parsed.leaderboard_results, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(HEADER)
        for _ in range(parsed.n if runs is None else runs):
            for benchmark in chosen:
                env.reset(benchmark=benchmark)
                since = time.monotonic()
                policy(env)
                state = env.state
                if env.unwrapped.baseline_degenerate:
                    degenerate.add(state.benchmark)
                states.append(EnvState(state.benchmark, state.commandline, time.monotonic() - since, state.reward))
                rows.writerow((state.benchmark, state.reward, states[-1].walltime, state.commandline))
                file.flush()
    if validate if validate is not None else not parsed.novalidate:
        for state in states:
            result: ValidationResult = env.validate(state)
            if not result.okay():
                raise RuntimeError(f"{state.benchmark} {state.commandline}: {'; '.join(result.errors)}")
    rewards = [state.reward or 0.0 for state in states if state.benchmark not in degenerate]
    mean = math.exp(sum(map(math.log, rewards)) / len(rewards)) if rewards and min(rewards) > 0 else 0.0
    without = f", without {', '.join(sorted(degenerate))}, which -Oz does not make smaller" if degenerate else ""
    print(f"{len(states)} states, geometric mean of rewards {mean:.4f}{without}")
    return states
