#!/usr/bin/env python3
"""Agents that order LLVM passes, and searches that do not learn, on programs of Debian: the fewest instructions within
as many evaluations, and within as many seconds. An evaluation is the state after one pass. A second is one of a
processor, of the client and of the cluster together, so that what else a machine does counts little.

    deploy/llvm/build_debian.py programs
    bench/run.sh llvm_agents --llvm-programs programs --folder agents train graph 1  # 2, 3; unshared, features, tabular
    bench/run.sh llvm_agents --llvm-programs programs --folder agents judge          # what was trained, and searches
    build/python/bin/python bench/llvm_agents_table.py agents

graph is GATv2 and PPO of loopfleet.models.PassAgent; unshared has an encoder each for policy and value. features is PPO
of Stable-Baselines3 over Autophase and the counts of the passes so far; rllib is RLlib's PPO over the same, with the
same settings, in an environment of its own (bench/requirements-rllib.txt), so it is judged by `judge --only rllib`.
tabular is Q-learning over the last pass and the part of the episode. All learn on the same programs of Csmith for as
many steps.
"""

import argparse
import functools
import itertools
import json
import math
import os
import time
from pathlib import Path
from statistics import geometric_mean

import numpy as np

import loopfleet
from loopfleet.models import PassAgent, PassRollouts, instruction_counts, train_pass_agent
from loopfleet.pass_failures import PASS_FAILURES

FLAGS = [flag for flag, _ in loopfleet._core.pass_actions("Passes19")]
PROGRAMS = [f"benchmark://debian-v0/{name}" for name in (
    "bzip2", "ed", "expat", "gif", "gsm", "gzip", "lz4", "mad", "nettle", "speex", "yaml", "zlib")]
EPISODE, WIDTH, SIDE_BY_SIDE = 20, 24, 4
LEARNERS = ("graph", "unshared", "features", "rllib", "tabular")
METHODS = (*LEARNERS, "random", "greedy")


# ---- episodes whose policy needs no graph


class Walks:
    """Episodes in step with each other: one batch a step."""

    def __init__(self, client, observe):
        self.client, self.observe = client, observe

    def evaluate(self, jobs):
        """What was observed; None after a pass that fails."""
        found = []
        for outcome in self.client.evaluate_many(
                [{"benchmark": uri, "passes": [FLAGS[action] for action in passes], "observe": [self.observe]}
                 for uri, passes in jobs], timeout=600).outcomes:
            if not outcome.ok and outcome.status not in PASS_FAILURES:
                raise RuntimeError(f"{outcome.status}: {outcome.message}")
            found.append(outcome.observed[self.observe] if outcome.ok else None)
        return found


TOTAL_INSTS = loopfleet._core.pass_number_names("Autophase").index("TotalInsts")
FEATURES = len(loopfleet._core.pass_number_names("Autophase")) + 3 + len(FLAGS)


def features_of(autophase, start, passes):
    count = max(autophase[TOTAL_INSTS], 1)
    facts = [math.log(count / max(start, 1)), math.log(count) / 10, len(passes) / EPISODE]
    return np.concatenate((np.asarray(autophase) / count, facts,
                           np.bincount(passes, minlength=len(FLAGS)) / 4)).astype(np.float32)


def feature_envs(client, programs, seed):
    import gymnasium as gym
    from stable_baselines3.common.vec_env import VecEnv

    class FeatureEnvs(VecEnv):
        """WIDTH episodes over Autophase; the reward is ln(c/c')."""

        def __init__(self):
            super().__init__(WIDTH, gym.spaces.Box(-np.inf, np.inf, (FEATURES,), np.float32),
                             gym.spaces.Discrete(len(FLAGS)))
            self.walks, self.random = Walks(client, "Autophase"), np.random.default_rng(seed)
            self.ended = []

        def begin(self, places):
            for place in places:
                self.uris[place] = programs[int(self.random.integers(len(programs)))]
                self.passes[place] = []
            for place, found in zip(places, self.walks.evaluate([(self.uris[place], []) for place in places])):
                self.sizes[place] = [found[TOTAL_INSTS]]
                self.seen[place] = features_of(found, found[TOTAL_INSTS], [])

        def reset(self):
            self.uris, self.passes, self.sizes = [""] * WIDTH, [[] for _ in range(WIDTH)], [[] for _ in range(WIDTH)]
            self.seen = np.zeros((WIDTH, FEATURES), np.float32)
            self.begin(range(WIDTH))
            return self.seen.copy()

        def step_async(self, actions):
            for place, action in enumerate(actions):
                self.passes[place].append(int(action))

        def step_wait(self):
            rewards, over, infos = np.zeros(WIDTH, np.float32), np.zeros(WIDTH, bool), [{} for _ in range(WIDTH)]
            for place, found in enumerate(self.walks.evaluate(list(zip(self.uris, self.passes)))):
                over[place] = found is None or len(self.passes[place]) == EPISODE
                if found is not None:
                    rewards[place] = math.log(max(self.sizes[place][-1], 1) / max(found[TOTAL_INSTS], 1))
                    self.sizes[place].append(found[TOTAL_INSTS])
                    self.seen[place] = features_of(found, self.sizes[place][0], self.passes[place])
                if over[place]:
                    infos[place]["terminal_observation"] = self.seen[place].copy()
                    self.ended.append((self.uris[place], min(self.sizes[place])))
            if over.any():
                self.begin(np.flatnonzero(over))
            return self.seen.copy(), rewards, over, infos

        def close(self):
            pass

        def get_attr(self, name, indices=None):
            return [getattr(self, name) for _ in self._get_indices(indices)]

        def set_attr(self, name, value, indices=None):
            raise AttributeError(name)

        def env_method(self, name, *arguments, indices=None, **named):
            raise AttributeError(name)

        def env_is_wrapped(self, wrapper, indices=None):
            return [False for _ in self._get_indices(indices)]

    return FeatureEnvs()


def feature_env(client, programs, seeds, ended):
    import gymnasium as gym

    class FeatureEnv(gym.Env):
        """One episode of FeatureEnvs."""

        observation_space = gym.spaces.Box(-np.inf, np.inf, (FEATURES,), np.float32)
        action_space = gym.spaces.Discrete(len(FLAGS))

        def __init__(self):
            self.walks, self.random = Walks(client, "Autophase"), np.random.default_rng(next(seeds))

        def reset(self, *, seed=None, options=None):
            self.uri, self.passes = programs[int(self.random.integers(len(programs)))], []
            (found,) = self.walks.evaluate([(self.uri, [])])
            self.sizes = [found[TOTAL_INSTS]]
            self.seen = features_of(found, found[TOTAL_INSTS], [])
            return self.seen, {}

        def step(self, action):
            self.passes.append(int(action))
            (found,) = self.walks.evaluate([(self.uri, self.passes)])
            reward = 0.0
            if found is not None:
                reward = math.log(max(self.sizes[-1], 1) / max(found[TOTAL_INSTS], 1))
                self.sizes.append(found[TOTAL_INSTS])
                self.seen = features_of(found, self.sizes[0], self.passes)
            over = found is None or len(self.passes) == EPISODE
            if over:
                ended.append((self.uri, min(self.sizes)))
            return self.seen, reward, over, False, {}

    return FeatureEnv()


# RLlib pickles what it is given, but for what a module holds.
FOR_RLLIB = {}


def feature_env_for_rllib(_):
    return feature_env(**FOR_RLLIB)


class TabularQ:
    """The state is the last pass and the fifth of the episode."""

    def __init__(self):
        self.values = np.zeros((5, len(FLAGS) + 1, len(FLAGS)), np.float32)

    def state(self, passes):
        return len(passes) * 5 // EPISODE, (passes[-1] if passes else len(FLAGS))

    def walk(self, random, exploration):
        """Passes of an episode: the state knows nothing of the program, so all are chosen at once."""
        passes = []
        while len(passes) < EPISODE:
            values = self.values[self.state(passes)]
            best = np.flatnonzero(values == values.max())
            passes.append(int(random.integers(len(FLAGS)) if random.random() < exploration else random.choice(best)))
        return passes

    def learn(self, passes, sizes, rate=0.2):
        for step in reversed(range(len(sizes) - 1)):
            at = (*self.state(passes[:step]), passes[step])
            after = 0.0 if step + 1 == EPISODE else self.values[self.state(passes[:step + 1])].max()
            reward = math.log(max(sizes[step], 1) / max(sizes[step + 1], 1))
            self.values[at] += rate * (reward + after - self.values[at])


def sizes_along(walks, uri_and_passes):
    """The sizes after each pass of several walks, until one fails; all in one batch."""
    jobs = [(uri, passes[:length]) for uri, passes in uri_and_passes for length in range(len(passes) + 1)]
    found = iter(walks.evaluate(jobs))
    sizes = []
    for _, passes in uri_and_passes:
        row = [next(found) for _ in range(len(passes) + 1)]
        sizes.append(row[:row.index(None)] if None in row else row)
    return sizes


# ---- training


def training_programs(arguments):
    """Programs of Csmith with 200 to 800 instructions, and -Oz's number of each."""
    kept = arguments.folder / "programs.txt"
    if not kept.exists():
        with loopfleet.LocalCluster(leave_timing_cores=False) as cluster, cluster.client() as client:
            sizes = instruction_counts(client, [f"generator://csmith-v0/{seed}" for seed in range(1_000, 1_250)])
            programs = [uri for uri, size in sizes.items() if 200 <= size <= 800]
            oz = instruction_counts(client, programs, "IrInstructionCountOz")
        kept.write_text("".join(f"{uri} {size}\n" for uri, size in oz.items()))
    return {uri: int(size) for uri, size in (line.split() for line in kept.read_text().splitlines())}


def processor_seconds(cluster):
    """Of this process and of the cluster, with all that they started."""
    parents, ticks = {}, {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended; its parent has its ticks
            parents[int(name)], ticks[int(name)] = int(fields[1]), sum(map(int, fields[11:15]))

    def is_counted(pid):
        while pid in parents and pid not in (os.getpid(), cluster.pid):
            pid = parents[pid]
        return pid in (os.getpid(), cluster.pid)

    return sum(ticks[pid] for pid in parents if is_counted(pid)) / os.sysconf("SC_CLK_TCK")


class Curve:
    def __init__(self, cluster, oz):
        self.cluster, self.oz, self.rows = cluster, oz, []
        self.since, self.processor_since = time.monotonic(), processor_seconds(cluster)

    def add(self, steps, ended, **facts):
        self.rows.append({
            **facts, "steps": steps, "seconds": round(time.monotonic() - self.since, 1),
            "processor_seconds": round(processor_seconds(self.cluster) - self.processor_since, 1),
            "oz_ratio": geometric_mean(self.oz[uri] / max(fewest, 1) for uri, fewest in ended)})
        print(json.dumps(self.rows[-1]), flush=True)


def train_graph(cluster, client, oz, seed, steps, path, *, shared=True):
    import torch
    torch.set_num_threads(1)
    agent = PassAgent.for_programs(client, list(oz), shared=shared, rate=5e-4, epochs=3, seed=seed)
    curve = Curve(cluster, oz)
    train_pass_agent(agent, client, list(oz), steps, episode_steps=EPISODE, width=WIDTH, batch=600, seed=seed,
                     on_update=lambda update: curve.add(ended=[(each.benchmark, min(each.sizes))
                                                               for each in update.episodes], **update.facts()))
    agent.save(path)
    return curve.rows


def train_features(cluster, client, oz, seed, steps, path):
    import torch
    from stable_baselines3 import PPO
    torch.set_num_threads(1)
    envs, curve = feature_envs(client, list(oz), seed), Curve(cluster, oz)
    agent = PPO("MlpPolicy", envs, n_steps=25, batch_size=100, n_epochs=4, gamma=1.0, gae_lambda=0.95,
                learning_rate=5e-4, ent_coef=0.01, seed=seed, device="cpu")
    while agent.num_timesteps < steps:
        agent.learn(WIDTH * 25, reset_num_timesteps=False)
        if envs.ended:
            curve.add(agent.num_timesteps, envs.ended)
            envs.ended = []
    agent.save(path)
    return curve.rows


def train_rllib(cluster, client, oz, seed, steps, path):
    """Environment and learner are in this process; what Ray's own processes take is not counted."""
    import llvm_agents
    import ray
    import torch
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
    from ray.tune.registry import register_env
    torch.set_num_threads(1)
    ended = []
    llvm_agents.FOR_RLLIB.update(client=client, programs=list(oz), seeds=itertools.count(1_000 * seed), ended=ended)
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    register_env("passes", llvm_agents.feature_env_for_rllib)
    agent = (PPOConfig().environment("passes")
             .env_runners(num_env_runners=0, num_envs_per_env_runner=SIDE_BY_SIDE * 2)
             .learners(num_learners=0, num_gpus_per_learner=0)
             .training(lr=5e-4, gamma=1.0, lambda_=0.95, clip_param=0.2, entropy_coeff=0.01, vf_loss_coeff=0.5,
                       vf_clip_param=math.inf, use_kl_loss=False, grad_clip=0.5,
                       train_batch_size_per_learner=WIDTH * 25, minibatch_size=100, num_epochs=4)
             .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64], fcnet_activation="tanh",
                                                        vf_share_layers=False))
             .debugging(seed=seed).build_algo())
    curve, done = Curve(cluster, oz), 0
    while done < steps:
        done = int(agent.train()["num_env_steps_sampled_lifetime"])
        if ended:
            curve.add(done, ended)
            ended.clear()
    agent.get_module().save_to_path(path.resolve())
    agent.stop()
    ray.shutdown()
    return curve.rows


def train_tabular(cluster, client, oz, seed, steps, path):
    programs, random, walks, agent, curve = (
        list(oz), np.random.default_rng(seed), Walks(client, "IrInstructionCount"), TabularQ(), Curve(cluster, oz))
    for done in range(0, steps, WIDTH * EPISODE):
        batch = [(programs[int(random.integers(len(programs)))], agent.walk(random, max(0.1, 1 - 1.5 * done / steps)))
                 for _ in range(WIDTH)]
        sizes = sizes_along(walks, batch)
        for (_, passes), row in zip(batch, sizes):
            agent.learn(passes, row)
        curve.add(done + WIDTH * EPISODE, [(uri, min(row)) for (uri, _), row in zip(batch, sizes)])
    np.save(path, agent.values)
    return curve.rows


# ---- searching one program


class Meter:
    """What a search has used and found on one program."""

    def __init__(self, cluster, start, arguments):
        self.cluster, self.arguments = cluster, arguments
        self.fewest, self.evaluations, self.rows = start, 0, []
        self.since, self.processor_since = time.monotonic(), processor_seconds(cluster)

    def note(self, sizes):
        self.evaluations += len(sizes)
        self.fewest = min([self.fewest, *sizes])
        self.seconds = processor_seconds(self.cluster) - self.processor_since
        self.rows.append([self.evaluations, round(self.seconds, 2), round(time.monotonic() - self.since, 2),
                          self.fewest])

    def is_over(self):
        """Both budgets are used: one run serves both comparisons."""
        return self.rows and self.evaluations >= self.arguments.evaluations and self.seconds >= self.arguments.seconds


def search_randomly(client, uri, meter, random):
    walks = Walks(client, "IrInstructionCount")
    while not meter.is_over():
        meter.note(sizes_along(walks, [(uri, [int(each) for each in random.integers(0, len(FLAGS), EPISODE)])])[0][1:])


def search_greedily(client, uri, meter, random):
    """Takes the pass that leaves the fewest instructions, until none helps."""
    walks, walk = Walks(client, "IrInstructionCount"), []
    while not meter.is_over():
        before = meter.fewest
        sizes = []
        for some in np.array_split(np.arange(len(FLAGS)), 6):  # so that it can be stopped in between
            found = walks.evaluate([(uri, [*walk, int(action)]) for action in some])
            sizes += [math.inf if size is None else size for size in found]
            meter.note([size for size in found if size is not None])
        if min(sizes) >= before:
            return
        walk.append(int(np.argmin(sizes)))


def search_tabularly(path):
    values = np.load(path)

    def search(client, uri, meter, random):
        """Goes on learning on the program."""
        agent, walks = TabularQ(), Walks(client, "IrInstructionCount")
        agent.values = values.copy()
        while not meter.is_over():
            passes = agent.walk(random, 0.1)
            (sizes,) = sizes_along(walks, [(uri, passes)])
            meter.note(sizes[1:])
            agent.learn(passes, sizes)
    return search


def search_by_features(path):
    from stable_baselines3 import PPO
    agent = PPO.load(path, device="cpu")
    return search_by_policy(lambda states: agent.predict(states, deterministic=False)[0])


def search_by_rllib(path):
    import torch
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.rl_module import RLModule
    torch.set_num_threads(1)
    module = RLModule.from_checkpoint(path.resolve())

    def actions(states):
        with torch.no_grad():
            said = module.forward_exploration({Columns.OBS: torch.from_numpy(states)})
        return torch.distributions.Categorical(logits=said[Columns.ACTION_DIST_INPUTS]).sample().numpy()

    return search_by_policy(actions)


def search_by_policy(actions):
    """``actions`` of one state each: what the policy draws."""
    def search(client, uri, meter, random):
        walks = Walks(client, "Autophase")
        (start,) = walks.evaluate([(uri, [])])
        while not meter.is_over():
            passes, seen = [[] for _ in range(SIDE_BY_SIDE)], [start] * SIDE_BY_SIDE
            for _ in range(EPISODE):
                states = np.stack([features_of(each, start[TOTAL_INSTS], done) for each, done in zip(seen, passes)])
                for done, action in zip(passes, actions(states)):
                    done.append(int(action))
                found = walks.evaluate([(uri, done) for done in passes])
                going = [place for place, each in enumerate(found) if each is not None]
                passes, seen = [passes[place] for place in going], [found[place] for place in going]
                meter.note([each[TOTAL_INSTS] for each in seen])
                if not going:
                    break
    return search


def search_by_graph(path):
    import torch
    torch.set_num_threads(1)
    agent = PassAgent.load(path)

    def search(client, uri, meter, random):
        agent.reseed(torch.initial_seed())  # that of seed_everything()
        rollouts, noted = PassRollouts(client, agent, episode_steps=EPISODE), {}

        def begin():
            episode = rollouts.begin(uri)
            noted[id(episode)] = [episode, 1]

        for _ in range(SIDE_BY_SIDE):
            begin()
        while rollouts.under_way:
            ended = rollouts.step(most=SIDE_BY_SIDE)
            for row in noted.values():
                if len(row[0].sizes) > row[1]:
                    meter.note(row[0].sizes[row[1]:])
                    row[1] = len(row[0].sizes)
            for episode in ended:
                del noted[id(episode)]
                if not meter.is_over():
                    begin()
    return search


SEARCHES = {"graph": search_by_graph, "unshared": search_by_graph, "features": search_by_features,
            "rllib": search_by_rllib, "tabular": search_tabularly}


def trained_search(method, path):
    """None: its packages are not here."""
    try:
        return SEARCHES[method](path)
    except ModuleNotFoundError as error:
        print(f"WITHOUT {method}, {path}: {error}; `judge --only {method}` installs them", flush=True)
        return None


def judge(arguments):
    runs = [("random", seed, lambda: search_randomly) for seed in (1, 2, 3)] + [("greedy", 1, lambda: search_greedily)]
    for method in LEARNERS:
        runs += [(method, seed, functools.partial(trained_search, method, path)) for seed in (1, 2, 3)
                 for path in sorted(arguments.folder.glob(f"{method}-{seed}.*")) if path.suffix != ".json"]
    for method, seed, load in runs:
        out = arguments.folder / f"judged-{method}-{seed}.json"
        if out.exists() or arguments.only not in (None, method):
            continue
        search = load()
        if search is None:
            continue
        rows = []
        # A new cluster has no stored answers of the searches before.
        cluster = loopfleet.LocalCluster(llvm_programs=arguments.llvm_programs, leave_timing_cores=False)
        with cluster, cluster.client(silence_limit=600.0) as client:
            sizes = {name: instruction_counts(client, PROGRAMS, name) for name in (
                "IrInstructionCount", "IrInstructionCountO3", "IrInstructionCountOz", "IrInstructionCountOzAttr")}
            for place, uri in enumerate(PROGRAMS):
                seed_everything(1_000 * seed + place)
                meter = Meter(cluster, sizes["IrInstructionCount"][uri], arguments)
                search(client, uri, meter, np.random.default_rng(1_000 * seed + place))
                rows.append({"method": method, "seed": seed, "program": uri, "start": sizes["IrInstructionCount"][uri],
                             "O3": sizes["IrInstructionCountO3"][uri], "Oz": sizes["IrInstructionCountOz"][uri],
                             "OzAttr": sizes["IrInstructionCountOzAttr"][uri],
                             "curve": meter.rows})
                print(method, seed, uri, meter.rows[-1], f"Oz {rows[-1]['Oz']}", flush=True)
        out.write_text(json.dumps(rows))


def seed_everything(seed):
    import torch
    torch.manual_seed(seed)
    np.random.seed(seed)


def train(arguments):
    arguments.folder.mkdir(parents=True, exist_ok=True)
    name = f"{arguments.method}-{arguments.seed}"
    how = {"graph": train_graph, "unshared": functools.partial(train_graph, shared=False),
           "features": train_features, "rllib": train_rllib, "tabular": train_tabular}[arguments.method]
    path = arguments.folder / {"graph": f"{name}.npz", "unshared": f"{name}.npz", "features": f"{name}.zip",
                               "rllib": f"{name}.module", "tabular": f"{name}.npy"}[arguments.method]
    oz = training_programs(arguments)
    cluster = loopfleet.LocalCluster(leave_timing_cores=False)
    with cluster, cluster.client(silence_limit=600.0) as client:
        curve = how(cluster, client, oz, arguments.seed, arguments.steps, path)
    (arguments.folder / f"{name}.json").write_text(json.dumps(curve))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llvm-programs", help="the folder that deploy/llvm/build_debian.py made")
    parser.add_argument("--folder", type=Path, required=True,
                        help="keeps agents and runs; a command goes on where it was")
    parser.add_argument("--steps", type=int, default=24_000, help="of each training")
    parser.add_argument("--evaluations", type=int, default=80, help="of a search of one program")
    parser.add_argument("--seconds", type=float, default=3, help="of a processor, of a search of one program")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("train")
    one.add_argument("method", choices=LEARNERS)
    one.add_argument("seed", type=int)
    one.set_defaults(run=train)
    judged = commands.add_parser("judge")
    judged.add_argument("--only", choices=METHODS, help="one way to search, beside others in other processes")
    judged.set_defaults(run=judge)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
