#!/usr/bin/env python3
"""An agent that orders LLVM passes: PPO over ProGraML's graph of the program, read by GATv2. Trained on
programs of Csmith, then judged on programs of Debian that it has not seen, beside random search and a
greedy search at equal evaluations. An evaluation is the state after one pass. The agent is
loopfleet.models.PassAgent.

    deploy/llvm/build_debian.py programs
    LOOPFLEET_BIN=build/release/bin python client/python/examples/llvm_gatv2_ppo.py \\
        --llvm-programs programs --out docs/examples/llvm_gatv2_ppo

Large graphs are left out, and the agent then decides by the program's counts; a tenth of the training
episodes do without graphs, too. The results say for which programs that was so.
"""

import argparse
import json
import math
from statistics import geometric_mean

import numpy as np
import torch

import loopfleet
from loopfleet.models import PassAgent, PassRollouts, instruction_counts, train_pass_agent


def training_programs(client, arguments):
    sizes = instruction_counts(client, [f"generator://csmith-v0/{seed}"
                                        for seed in range(1_000, 1_000 + arguments.train_seeds)])
    return [uri for uri, size in sizes.items() if 200 <= size <= arguments.most_instructions]


def train(client, arguments):
    programs = training_programs(client, arguments)
    agent = PassAgent.for_programs(client, programs, shared=arguments.encoder == "shared", rate=arguments.rate,
                                   epochs=arguments.epochs, seed=arguments.seed)
    best = instruction_counts(client, programs, "IrInstructionCountOz")
    print(f"{len(programs)} programs to train on, {len(agent.vocabulary)} texts", flush=True)
    agent.notes = {"programs": len(programs), "encoder": arguments.encoder, "curve": []}

    def on_update(update):
        ratio = geometric_mean(best[each.benchmark] / min(each.sizes) for each in update.episodes)
        agent.notes["curve"].append({**update.facts(), "oz_ratio": ratio})
        print(json.dumps(agent.notes["curve"][-1]), flush=True)
        agent.save(f"{arguments.out}.npz")

    train_pass_agent(agent, client, programs, arguments.steps, seconds=arguments.seconds,
                     episode_steps=arguments.episode, width=arguments.width, batch=arguments.batch,
                     seed=arguments.seed, on_update=on_update)
    return agent


# ---- judging


def with_policy(client, agent, uris, evaluations, steps):
    """The fewest instructions of each program within so many states, and for how many of them a graph was seen."""
    rollouts = PassRollouts(client, agent, episode_steps=steps)
    fewest, graphs = dict.fromkeys(uris, math.inf), dict.fromkeys(uris, 0)
    for uri in uris:
        for _ in range(evaluations // steps):
            rollouts.begin(uri)
    while rollouts.under_way:
        for episode in rollouts.step(most=16):
            fewest[episode.benchmark] = min(fewest[episode.benchmark], *episode.sizes)
            graphs[episode.benchmark] += episode.saw_graphs
    return fewest, graphs


def at_random(client, actions, uris, evaluations, steps, seed):
    random = np.random.default_rng(seed)
    fewest = dict.fromkeys(uris, math.inf)
    for uri in uris:
        for _ in range(evaluations // steps):
            walk = [actions[action] for action in random.integers(0, len(actions), steps)]
            jobs = [{"benchmark": uri, "passes": walk[:length], "observe": ["IrInstructionCount"]}
                    for length in range(steps + 1)]
            for outcome in client.evaluate_many(jobs, timeout=600).outcomes:
                if outcome.ok:
                    fewest[uri] = min(fewest[uri], outcome.observed["IrInstructionCount"])
    return fewest


def greedily(client, actions, uris, evaluations):
    """Takes the pass that leaves the fewest instructions, as often as all passes can be tried."""
    fewest = instruction_counts(client, uris)
    for uri in uris:
        walk, left = [], evaluations
        while left > 0:
            tried = actions[:left]
            left -= len(tried)
            jobs = [{"benchmark": uri, "passes": [*walk, flag], "observe": ["IrInstructionCount"]} for flag in tried]
            found = [(outcome.observed["IrInstructionCount"], flag)
                     for flag, outcome in zip(tried, client.evaluate_many(jobs, timeout=600).outcomes) if outcome.ok]
            if not found or min(found)[0] >= fewest[uri]:
                break
            fewest[uri] = min(found)[0]
            walk.append(min(found)[1])
    return fewest


def judge(client, agent, arguments):
    start, oz, o3 = (instruction_counts(client, arguments.test, observe) for observe in
                     ("IrInstructionCount", "IrInstructionCountOz", "IrInstructionCountO3"))
    uris = [uri for uri in arguments.test if uri in oz]
    if missing := set(arguments.test) - set(uris):
        raise RuntimeError(f"these programs cannot be had: {', '.join(sorted(missing))}")
    rows = {"-O3": [o3], "no pass": [start],
            "greedy": [greedily(client, agent.actions, uris, arguments.evaluations)]}
    print("greedy done", flush=True)
    rows["random search"] = [at_random(client, agent.actions, uris, arguments.evaluations, arguments.episode, seed)
                             for seed in range(arguments.seeds)]
    print("random search done", flush=True)
    rows["agent"], graphs = [], {}
    for seed in range(arguments.seeds):
        agent.reseed(seed)
        fewest, graphs = with_policy(client, agent, uris, arguments.evaluations, arguments.episode)
        rows["agent"].append(fewest)
        print(f"agent done, seed {seed}", flush=True)
    return {"oz_ratio": {name: [geometric_mean(oz[uri] / of[uri] for uri in uris) for of in seeds]
                         for name, seeds in rows.items()},
            "instructions": {uri: {"Oz": oz[uri], **{name: [of[uri] for of in seeds] for name, seeds in rows.items()}}
                             for uri in uris},
            "states_with_graph": {uri: graphs[uri] for uri in uris}}


def draw(curve, results, out):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4))
    left.plot([row["steps"] for row in curve], [row["oz_ratio"] for row in curve])
    left.set(title="training, programs of Csmith", xlabel="steps", ylabel="-Oz's instructions / the agent's")
    names = list(results["oz_ratio"])
    right.bar(names, [float(np.mean(results["oz_ratio"][name])) for name in names])
    right.axhline(1.0, color="black", linewidth=0.8)
    right.tick_params(axis="x", rotation=30)
    right.set(title="programs of Debian", ylabel="geometric mean")
    figure.tight_layout()
    figure.savefig(f"{out}.png", dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llvm-programs", help="the folder that deploy/llvm/build_debian.py made")
    parser.add_argument("--test", nargs="+", metavar="URI", help="programs to judge on (default: debian-v0, the "
                        "smaller ones)")
    parser.add_argument("--encoder", choices=("shared", "unshared"), default="shared")
    parser.add_argument("--steps", type=int, default=100_000, help="of training, at most")
    parser.add_argument("--seconds", type=float, default=1_200, help="of training, at most")
    parser.add_argument("--train-seeds", type=int, default=250, help="programs to choose from")
    parser.add_argument("--most-instructions", type=int, default=800, help="of a program to train on")
    parser.add_argument("--episode", type=int, default=20, help="passes")
    parser.add_argument("--width", type=int, default=24, help="episodes side by side")
    parser.add_argument("--batch", type=int, default=600, help="steps of an update")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--evaluations", type=int, default=120, help="states of each program in a comparison")
    parser.add_argument("--seeds", type=int, default=3, help="of random search and of the policy's samples")
    parser.add_argument("--seed", type=int, default=1, help="of training")
    parser.add_argument("--judge", action="store_true", help="do not train: judge the agent in OUT.npz")
    parser.add_argument("--out", required=True,
                        help="writes OUT.npz after each update, OUT.json and OUT.png in the end")
    arguments = parser.parse_args()
    arguments.test = arguments.test or [f"benchmark://debian-v0/{name}" for name in (
        "bzip2", "ed", "expat", "gif", "gsm", "gzip", "lz4", "mad", "nettle", "speex", "yaml", "zlib")]
    torch.set_num_threads(1)  # the other cores are the fleet's
    cluster = loopfleet.LocalCluster(llvm_programs=arguments.llvm_programs, leave_timing_cores=False)
    # A machine that does other work may keep the coordinator waiting; a training should outlast that.
    with cluster, cluster.client(silence_limit=600.0) as client:
        agent = PassAgent.load(f"{arguments.out}.npz") if arguments.judge else train(client, arguments)
        results = judge(client, agent, arguments)
    facts = {"training": agent.notes, "evaluations": arguments.evaluations, "episode": arguments.episode, **results}
    with open(f"{arguments.out}.json", "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)
    draw(agent.notes["curve"], results, arguments.out)
    for name, ratios in results["oz_ratio"].items():
        print(f"{name:14} {', '.join(f'{ratio:.3f}' for ratio in ratios)}")


if __name__ == "__main__":
    main()
