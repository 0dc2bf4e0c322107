"""A race on LoopTune's test set, products that no agent was trained on: the walks of a policy against random ones, at
equal numbers of evaluated schedules. Used by experiment.py beside this."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import loopfleet
from loopfleet.envs import LoopTuneEnv
from loopfleet.models.training import Policy

_CURVE_POINTS = 30
SIZES = range(64, 257, 16)
# LoopTune's test set, as bench/run.sh search has it.
TEST_PRODUCTS = [f"benchmark://mm-v0/{name}" for name in (
    "mm112_208_256 mm112_224_128 mm112_256_64 mm112_256_80 mm128_160_224 mm160_224_192 mm176_128_160 mm176_144_160 "
    "mm176_192_160 mm192_192_80 mm192_256_256 mm208_128_256 mm208_160_80 mm208_80_224 mm224_112_176 mm224_208_224 "
    "mm224_224_256 mm224_64_240 mm240_208_144 mm256_160_112 mm64_240_64 mm80_176_224 mm96_160_256 mm96_224_240 "
    "mm96_240_128").split()]


def matmuls(train: int, held_out: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """URIs to train on, and others of the test set to be judged on; none in both."""
    every = [f"benchmark://mm-v0/mm{m}_{n}_{k}" for m in SIZES for n in SIZES for k in SIZES]
    rng = np.random.default_rng(seed)
    known = rng.permutation([each for each in every if each not in TEST_PRODUCTS])
    return known[:train].tolist(), rng.permutation(TEST_PRODUCTS)[:held_out].tolist()


def schedules(policy: Policy, benchmark: str, evaluations: int, seed: int) -> list[list[str]]:
    """The first ``evaluations`` different trees that episodes of a policy pass, the untuned one left out. No
    network is needed for that: they are measured later, those of all racers together."""
    env = LoopTuneEnv(benchmark, reward_space=None, action_space="looptune")
    rng = np.random.default_rng(seed)
    observation, info = env.reset()
    seen = {env.observation["tree_key"]}
    found: list[list[str]] = []
    for _ in range(200 * evaluations):  # a policy that always walks the same way finds no more
        action = policy(observation, info["action_mask"], rng)
        observation, _, terminated, truncated, info = env.step(action)
        key = env.observation["tree_key"]
        if key not in seen:
            seen.add(key)
            found.append([env.action_space.names[number] for number in env.actions])
            if len(found) == evaluations:
                break
        if terminated or truncated:
            observation, info = env.reset()
    return found


def race(client: loopfleet.Client, racers: dict[str, Policy], benchmarks: Sequence[str], evaluations: int,
         seeds: int) -> dict:
    """Best GFLOP/s after each evaluation, for each racer, benchmark and seed; and of what each found best,
    measured once more beside the others' (a best of many is partly luck)."""
    curves: dict[str, list[list[list[float]]]] = {name: [] for name in racers}
    final: dict[str, list[list[float]]] = {name: [] for name in racers}
    untuned = []
    for benchmark in benchmarks:
        again = [(benchmark, [])]
        for name, policy in racers.items():
            rows = []
            for seed in range(seeds):
                walks = schedules(policy, benchmark, evaluations, seed)
                figures = client.evaluate_many([(benchmark, walk) for walk in walks]).gflops
                figures = np.nan_to_num(figures, nan=0.0)
                again.append((benchmark, walks[int(np.argmax(figures))]))
                padded = np.concatenate([figures, np.zeros(evaluations - len(figures))])
                rows.append(np.maximum.accumulate(padded).tolist())
            curves[name].append(rows)
        # Three times in turn, so that a busy minute of the host hits all alike.
        times = [client.evaluate_many([loopfleet.job(*one, fresh=True) for one in again]).gflops for _ in range(3)]
        best = np.nanmedian(times, axis=0)
        untuned.append(float(best[0]))
        for place, name in enumerate(racers):
            final[name].append(best[1 + place * seeds:1 + (place + 1) * seeds].tolist())
        print(f"{benchmark.rsplit('/')[-1]:>14}: untuned {best[0]:6.1f}, " + ", ".join(
            f"{name} {np.mean(final[name][-1]):6.1f}" for name in racers) + " GFLOP/s", flush=True)
    return {"benchmarks": list(benchmarks), "evaluations": evaluations, "seeds": seeds, "untuned": untuned,
            "curves": curves, "final": final}


def report(result: dict, training: list[tuple[int, float]], title: str, out: Path, facts: dict) -> None:
    """Writes OUT.json, plots OUT.png, and says who won. ``facts["by_actors"]``, if there, are plotted, too."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    untuned = np.array(result["untuned"])
    by_actors = facts.get("by_actors", [])
    figure, (left, right, *more) = plt.subplots(1, 3 if by_actors else 2, figsize=(14 if by_actors else 10, 3.8))
    for axis in more:
        for name, label in (("steps_a_second", "steps"), ("evaluations_a_second", "new trees")):
            axis.plot([one["actors"] for one in by_actors], [one[name] for one in by_actors], marker="o", label=label)
        axis.set(xlabel="actors", ylabel="a second", ylim=(0, None), title="one coordinator, one worker")
        axis.legend()
    left.plot([steps for steps, _ in training], [value for _, value in training], color="tab:blue")
    left.set(xlabel="training steps", ylabel="mean return of recent episodes", title=f"{title}: training")
    summary = {}
    for (name, curve), color in zip(result["curves"].items(), ("tab:blue", "tab:gray")):
        speedup = np.array(curve) / untuned[:, None, None]  # benchmark x seed x evaluation
        logs = np.log(np.maximum(speedup, 1e-3))
        x = np.arange(1, logs.shape[2] + 1)
        per_seed = np.exp(logs.mean(axis=0))
        right.plot(x, np.exp(logs.mean(axis=(0, 1))), color=color, label=name)
        right.fill_between(x, per_seed.min(axis=0), per_seed.max(axis=0), color=color, alpha=0.2)
        final = np.array(result["final"][name]) / untuned[:, None]
        summary[name] = float(np.exp(np.log(final).mean()))
    right.set(xlabel="evaluations", ylabel="best speed-up over untuned", ylim=(0, None),
              title=f"{len(untuned)} held-out matmuls, {result['seeds']} seeds")
    right.legend()
    figure.tight_layout()
    figure.savefig(out.with_suffix(".png"), dpi=80)
    agent, other = list(summary)[:2]
    wins = np.mean(np.array(result["final"][agent]) > np.array(result["final"][other]))
    thinned = training[::max(1, len(training) // _CURVE_POINTS)]
    facts = {**facts, "returns": [(steps, round(value, 3)) for steps, value in thinned], "speedup_of_the_best": summary, f"{agent} ahead of {other}": float(wins),
             **{key: result[key] for key in ("benchmarks", "evaluations", "seeds", "untuned", "final")}}
    out.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")
    print(", ".join(f"{name}: {value:.2f} x untuned" for name, value in summary.items()) +
          f" after {result['evaluations']} evaluations, measured anew; {agent} is ahead of {other} in {wins:.0%} of races")
