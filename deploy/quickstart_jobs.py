#!/usr/bin/env python3
"""Prints the quickstart's jobs, one JSON object per line, for `loopfleet submit -`.

For every benchmark: its default schedule, then random walks that reach trees which differ from one
another. Half of the walks are the same in every run, the other half follow --seed: so a later run
shows both, answers from the store and fresh measurements. `loopfleet replay` is asked which steps
are legal and which tree a walk reaches; nothing here knows the language of loop trees.
"""

import argparse
import json
import random
import subprocess
import sys

# How many trees of each. 256 takes longest to check and to time, so it gets the fewest.
MATRIX_PRODUCTS = {
    "benchmark://mm64_256_16_range-v0/mm64_64_64": 80,
    "benchmark://mm64_256_16_range-v0/mm128_128_128": 60,
    "benchmark://mm64_256_16_range-v0/mm256_256_256": 40,
}
ADDITIONS = {"benchmark://loop_tool-cpu-v0/1048576": 40}

SAME_EVERY_RUN = 0  # the seed of the walks that do not follow --seed
ROUNDS = 50  # of random walks for one benchmark, before it is said to have too few trees


def matrix_walk(rng):
    """Goes to some loop and changes it, a few times over."""
    actions = []
    for _ in range(rng.randint(1, 4)):
        actions += [rng.choice(["down", "down", "up"])] * rng.randint(0, 3)
        actions.append(
            rng.choice(["swap_down", "swap_up", "swap_down", "swap_up", "split_4", "split_8",
                        "split_16", "split_32"]))
    return actions


def addition_walk(rng):
    """Goes to one or two of the inner loops of the simple dialect, and sizes and threads them."""
    actions = ["toggle_thread"] * (rng.random() < 0.3)
    for _ in range(rng.randint(1, 2)):
        actions += ["toggle_mode", *["up"] * rng.randint(1, 2), "toggle_mode"]
        actions += ["up"] * rng.randint(1, 12)
        actions += ["toggle_thread"] * (rng.random() < 0.2)
    return actions


class Replay:
    """A running `loopfleet replay`: one line in, one line out."""

    def __init__(self, loopfleet):
        self.process = subprocess.Popen([loopfleet, "replay"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=10)

    def __call__(self, uri, actions):
        """The legal ones of `actions`, and the key of the tree that they reach."""
        request = {"uri": uri, "actions": actions, "every_step": True, "rules": "structural"}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"replay of {request}: {answer['error']}")
        if "action_states" not in answer:  # in the simple dialect, all actions are legal and change the tree
            actions = [step["action"] for step in answer["steps"] if step["legal"]]
            while actions and actions[-1] in ("up", "down"):
                actions.pop()  # only moves the cursor: the tree is reached already
        return actions, answer["tree_key"]


def jobs_of(replay, uri, walk, count, seed):
    """The default schedule and `count` - 1 others, all of different trees."""
    actions, key = replay(uri, [])
    seen = {key}
    yield {"benchmark": uri, "actions": actions}
    fixed, fresh = random.Random(f"{uri} {SAME_EVERY_RUN}"), random.Random(f"{uri} {seed}")
    for number in range(1, count):
        rng = fixed if number < count // 2 else fresh
        for _ in range(ROUNDS):
            actions, key = replay(uri, walk(rng))
            if key not in seen:
                break
        else:
            raise RuntimeError(f"{uri}: only {len(seen)} trees found")
        seen.add(key)
        yield {"benchmark": uri, "actions": actions}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--loopfleet", default="loopfleet", help="the command to run")
    parser.add_argument("--seed", type=int, default=1, help="of the second half of the walks")
    arguments = parser.parse_args()
    with Replay(arguments.loopfleet) as replay:
        for benchmarks, walk in ((MATRIX_PRODUCTS, matrix_walk), (ADDITIONS, addition_walk)):
            for uri, count in benchmarks.items():
                for job in jobs_of(replay, uri, walk, count, arguments.seed):
                    print(json.dumps(job))


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, OSError, ValueError) as error:
        sys.exit(f"quickstart_jobs: {error}")
