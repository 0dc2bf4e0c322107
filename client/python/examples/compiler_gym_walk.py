#!/usr/bin/env python3
"""Code for CompilerGym's loop_tool environment, ported by changing one line: how wide should the innermost loop of
a point-wise addition be?

    LOOPFLEET_BIN=build/release/bin python client/python/examples/compiler_gym_walk.py --out docs/examples/compiler_gym
"""

import argparse
from pathlib import Path

import loopfleet
import loopfleet.compiler_gym as compiler_gym  # was: import compiler_gym


def sweep(benchmark, widths):
    """(width, GFLOP/s) for each width of the second loop. As CompilerGym's users write it."""
    env = compiler_gym.make("loop_tool-v0")
    env.reset(benchmark=env.datasets.benchmark(uri=benchmark), action_space="simple",
              observation_space="action_state", reward_space="flops")
    # From the outer loop to the second one, and to sizing it.
    env.multistep([env.action_space[name] for name in ("toggle_mode", "up", "toggle_mode")])
    rows = []
    for width in widths:
        size = env.observation["action_state"][1]
        state, reward, done, info = env.multistep([env.action_space["up"]] * int(width - size))
        rows.append((width, env.observation["flops"]))
        print(f"width {width:4}: cursor {state[0]}, size {state[1]}, tail {state[2]}, {rows[-1][1]:6.2f} GFLOP/s "
              f"({env.episode_reward:+.2f} since the start)", flush=True)
        if done:
            print("ended:", info.get("error_details", ""))
            break
    print(env.observation["loop_tree"])
    env.close()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 65536, 1048576], help="of the addition")
    parser.add_argument("--most", type=int, default=512, help="widest innermost loop")
    parser.add_argument("--out", type=Path, default=Path("compiler_gym"), help="OUT.png")
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    widths = [1 << k for k in range(given.most.bit_length())]
    with loopfleet.LocalCluster(workers=1):
        curves = {size: sweep(f"benchmark://loop_tool-cpu-v0/{size}", widths) for size in given.sizes}

    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.8))
    for size, rows in curves.items():
        axes.plot(*zip(*rows), marker="o", label=f"{size:,} elements")
    axes.set(xscale="log", xlabel="width of the inner loop", ylabel="GFLOP/s", ylim=(0, None),
             title="loop_tool-v0: point-wise addition")
    axes.legend()
    figure.tight_layout()
    figure.savefig(given.out.with_suffix(".png"), dpi=80)


if __name__ == "__main__":
    main()
