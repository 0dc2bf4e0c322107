"""The ways that bench/run.sh search compares, and the models that some of them use. A way is a function (client,
benchmark, seconds, seed) -> facts."""

import functools
import sys
import time
from types import SimpleNamespace

import numpy as np

import loopfleet
from loopfleet import _core
from loopfleet.models import DQN, PPO, ComparisonModel, CostModel, Measured, PolicyModel
from loopfleet.rows import rows_of_file
from search_programs import is_judged, training_programs

STRATEGIES = [name for name, _ in _core.strategies() if name != "auto"]
AGENTS = {"DQN": DQN, "PPO": PPO}
REPEATS = 3
CALM_S = 8  # that a run waits at most for figures of grade A or B


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- models


class Models:
    """Fitted to searches of the training programs, or to a data set; kept in a folder."""

    def __init__(self, folder, cost, policy, comparison):
        self.folder, self.cost, self.policy, self.comparison = folder, cost, policy, comparison

    @classmethod
    def open(cls, given, folder):
        kinds = {"cost.npz": CostModel, "policy.npz": PolicyModel, "comparison.npz": ComparisonModel}
        if not all((folder / name).exists() for name in kinds):
            folder.mkdir(parents=True, exist_ok=True)
            data = training_data(given, folder)
            say(f"fitting models to {len(data):,} schedules of {len(np.unique(data.program))} programs")
            for name, kind in kinds.items():
                kind(seed=1).fit(data).save(folder / name)
        else:
            say(f"models are those of {folder}: --data, --hardware-class, --training and --suspect play no part")
        return cls(folder, *(kind.load(folder / name) for name, kind in kinds.items()))


def training_data(given, folder):
    if given.data:
        from loopfleet.models import read_rows
        rows = read_rows(given.data, **({"hardware_class": given.hardware_class} if given.hardware_class else {}))
    else:
        database = folder / "training.db"
        programs = training_programs(given.table)
        with loopfleet.LocalCluster(workers=given.workers, database=database), loopfleet.Client() as client:
            for number, benchmark in enumerate(programs):  # again after an interruption: the store answers
                loopfleet.search(benchmark, "genetic", evaluations=given.training, seed=number, client=client,
                                 confirm=False, threads=given.threads)
                loopfleet.search(benchmark, "random", evaluations=given.training // 2, seed=number, client=client,
                                 confirm=False, threads=given.threads)
                say(f"training: {number + 1} of {len(programs)} programs")
        rows = list(rows_of_file(database))
    kept = [row for row in rows if not is_judged(row.get("benchmark"), row.get("ir"))]
    if len(kept) < len(rows):
        say(f"{len(rows) - len(kept):,} rows of the programs to be judged by were left out of the training")
    return Measured.of(kept, use_suspect=given.suspect)


def agent_of(name, given, folder, programs=None):
    """An agent that walked the training programs on a cluster of its own; kept in the folder, too."""
    path = folder / f"{name.lower()}.npz"
    if path.exists():
        say(f"the {name} is {path}: --agent-steps plays no part")
        return AGENTS[name].load(path)
    import torch
    from gymnasium.vector import AutoresetMode

    from loopfleet.envs import LoopTuneEnv, WalkVectorEnv

    programs = training_programs(given.table) if programs is None else programs
    if judged := [each for each in programs if is_judged(each)]:
        raise ValueError(f"a {name} that is judged by {judged[0]} must not be trained on it")
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    # A database beside that of the models, which is what they are fitted to.
    with loopfleet.LocalCluster(workers=given.workers, database=folder / "agents.db"), loopfleet.Client() as client:
        envs = WalkVectorEnv(16, env_class=LoopTuneEnv, autoreset_mode=AutoresetMode.SAME_STEP, client=client,
                             benchmarks=programs, action_space="looptune", reward_space="log_speedup", threads=given.threads)
        agent = AGENTS[name].for_envs(envs, seed=1)
        agent.train(envs, given.agent_steps, on_mark=lambda text: say(f"{name}: {text}"))
        envs.close()
    agent.save(path)
    return agent


# ---- ways


def in_turns(client, benchmark, actions, threads):
    """New figures of a schedule and of the untuned one: those of grade A or B, for which it waits; with none, the others."""
    jobs = [loopfleet.job(benchmark, each, fresh=True, threads=threads) for each in (actions, [])] * REPEATS
    good, all_ok = ([], []), ([], [])
    flop_count = taken = 0
    until = time.monotonic() + CALM_S
    while not taken or (min(map(len, good)) < REPEATS and time.monotonic() < until):
        for place, one in enumerate(client.evaluate_many(jobs)):
            taken += 1
            if one.ok:
                flop_count = one.flop_count
                all_ok[place % 2].append(one.elapsed_ns)
                if one.grade in "AB":
                    good[place % 2].append(one.elapsed_ns)
    elapsed_ns, untuned_ns = (float(np.median(few or many)) if many else None for few, many in zip(good, all_ok))
    return {"elapsed_ns": elapsed_ns, "untuned_ns": untuned_ns, "flop_count": flop_count, "confirmations": taken,
            "disturbed": not good[0]}


def searched(client, found, threads, **facts):
    """What a neighbour disturbed is measured again."""
    told = {"elapsed_ns": found.confirmed_ns, "untuned_ns": found.untuned_ns, "flop_count": found.flop_count,
            "confirmations": found.confirmations, "disturbed": found.disturbed}
    if found.disturbed:
        told |= in_turns(client, found.benchmark, found.actions, threads)
    return {**told, "evaluations": found.evaluations, "took_s": found.seconds, "actions": found.actions,
            "curve": [(point.evaluations, point.seconds, point.best_ns) for point in found.curve], **facts}


def by_strategy(strategy, threads):
    return lambda client, benchmark, seconds, seed: searched(
        client, loopfleet.search(benchmark, strategy, seconds=seconds, seed=seed, client=client, threads=threads), threads)


def by_model(models, pretrained, threads):
    """Genetic proposals, chosen by a cost model that learns as figures come in."""
    def run(client, benchmark, seconds, seed):
        scorer = (models.cost if pretrained else CostModel()).scorer_for(benchmark, None)
        start = models.policy if pretrained else ()
        found = loopfleet.search(benchmark, "genetic", seconds=seconds, seed=seed, client=client, threads=threads,
                                 scorer=scorer, start=start)
        return searched(client, found, threads, fits=scorer.fits, model_s=scorer.seconds)
    return run


def after_ten(threads, scorer, start=()):
    """Ten evaluations, of which the untuned schedule is one. Those of `start` come next, then genetic proposals."""
    def run(client, benchmark, seconds, seed):
        found = loopfleet.search(benchmark, "genetic", evaluations=10, in_flight=3, seed=seed, client=client,
                                 threads=threads, scorer=scorer, start=start)
        return searched(client, found, threads)
    return run


def ten_proposals(propose, threads):
    """The untuned schedule and nine of the model's, and no search."""
    start = SimpleNamespace(start_for=lambda benchmark, ir: propose(benchmark, 9))  # inside the search, whose time it is
    def run(client, benchmark, seconds, seed):
        found = loopfleet.search(benchmark, lambda most, results: [], evaluations=10, seed=seed, client=client,
                                 threads=threads, start=start)
        return searched(client, found, threads)
    return run


def first_schedule(propose, threads):
    """Chosen without any measurement; then measured."""
    def run(client, benchmark, seconds, seed):
        propose(benchmark, 1)  # what is imported and cached at the first call is no part of choosing
        took_s = []
        for _ in range(5):
            since = time.perf_counter()
            (actions,) = propose(benchmark, 1)
            took_s.append(time.perf_counter() - since)
        return {**in_turns(client, benchmark, actions, threads), "evaluations": 0, "took_s": float(np.median(took_s)),
                "actions": actions}
    return run


def of_random_walks(model):
    """Proposes those of 200 random walks that the model likes most, as a baseline for the policy."""
    def propose(benchmark, count):
        searcher = _core.Searcher(benchmark, strategy="random", seed=1)
        ((number, untuned),) = searcher.ask(1)
        searcher.tell([number], [1.0], 0.0)
        walks = [untuned, *(actions for _, actions in searcher.ask(200))]
        scores = model.scorer_for(benchmark, None)(walks)
        return [walks[place] for place in np.argsort(scores, kind="stable")[:count]]
    return propose


def ways_of(given, folder):
    """Name -> (function, budgets in seconds; None: it needs none). Only models that a way uses are made."""
    threads = given.threads
    models = functools.cache(lambda: Models.open(given, folder))
    agent = functools.cache(lambda name: agent_of(name, given, folder).propose)
    ways = {name: (lambda name=name: by_strategy(name, threads), given.seconds) for name in given.strategies}
    ways["cost model, learning from nothing"] = (lambda: by_model(None, False, threads), given.seconds)
    ways["policy and cost model, learning on"] = (lambda: by_model(models(), True, threads), given.seconds)
    # Name -> (its first schedule, its ten evaluations)
    learned = {
        "policy": (lambda: first_schedule(models().policy.propose, threads),
                   lambda: ten_proposals(models().policy.propose, threads)),
        "cost model": (lambda: first_schedule(of_random_walks(models().cost), threads),
                       lambda: after_ten(threads, models().cost)),
        "comparison model": (lambda: first_schedule(of_random_walks(models().comparison), threads),
                             lambda: after_ten(threads, models().comparison)),
        "policy and cost model": (None, lambda: after_ten(threads, models().cost, models().policy)),
        **{name: (lambda name=name: first_schedule(agent(name), threads),
                  lambda name=name: ten_proposals(agent(name), threads)) for name in AGENTS}}
    for name, (first, ten) in learned.items():
        if first is not None:
            ways[f"{name}: first schedule"] = (first, [None])
        ways[f"{name}: 10 evaluations"] = (ten, [None])
    return {name: (make(), budgets) for name, (make, budgets) in ways.items() if is_asked_for(name, given)}


def is_asked_for(way, given):
    return not given.only or any(word in way for word in given.only)
