"""The examples of client/python/examples as smoke tests. docs/EXAMPLES.md has the results of their long runs."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from learning_packages import learning_package

import loopfleet
from loopfleet import compiler_gym
from loopfleet.envs import walk_env
from loopfleet.models.training import random_policy
from loopfleet.source_files import compile_to_bitcode

EXAMPLES = Path(os.environ["LOOPFLEET_SOURCE"]) / "client/python/examples"


@pytest.fixture
def run(monkeypatch, tmp_path):
    """run(name, *arguments): an example's main(), with its output in tmp_path."""
    monkeypatch.syspath_prepend(str(EXAMPLES))

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *arguments, "--out", str(tmp_path / "out")])
        importlib.import_module(name).main()
        assert (tmp_path / "out.png").stat().st_size > 1000
        return tmp_path / "out.json"

    return run


def test_the_port_of_compilergyms_code(run, capsys):
    run("compiler_gym_walk", "--sizes", "1024", "--most", "4")
    said = capsys.readouterr().out
    assert "cursor 1, size 4, tail 0" in said and "for a in 256 : L0 cpu_parallel [thread]\n for a' in 4 : L1" in said


@pytest.mark.parametrize("name, agent", [("ppo", "PPO"), ("dqn", "DQN")])
def test_an_agent_races_random_search(name, agent, run, monkeypatch):
    learning_package("torch")
    facts = json.loads(run(name, "--steps", "1280", "--held-out", "1", "--evaluations", "4", "--seeds", "1").read_text())
    assert facts["training_steps"] >= 1280
    assert set(facts["speedup_of_the_best"]) == {agent, "random search"}
    assert facts["returns"][-1][0] >= 1000
    trained, held_out = importlib.import_module("race").matmuls(24, 25)
    assert len(trained) == 24 and facts["benchmarks"] == held_out[:1]
    monkeypatch.syspath_prepend(str(EXAMPLES.parents[2] / "bench/cases"))
    judged = importlib.import_module("search_programs").TEST_PRODUCTS
    assert sorted(held_out) == sorted(judged) and not set(trained) & set(judged)


def test_actors_train_in_processes_of_their_own(tmp_path):
    learning_package("torch")
    # As a program: what is spawned imports the main module again.
    done = subprocess.run([sys.executable, str(EXAMPLES / "distributed_dqn.py"), "--steps", "700", "--actors", "1,3",
                           "--rate-steps", "600", "--held-out", "1", "--evaluations", "4", "--seeds", "1", "--out", str(tmp_path / "out")],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "steps of 3 actors" in done.stdout and (tmp_path / "out.png").stat().st_size > 1000
    facts = json.loads((tmp_path / "out.json").read_text())
    assert facts["training_steps"] >= 700 and set(facts["speedup_of_the_best"]) == {"distributed DQN", "random search"}
    assert [one["actors"] for one in facts["by_actors"]] == [1, 3]
    assert all(one["steps"] >= 600 and 0 < one["evaluations"] for one in facts["by_actors"])


def test_the_data_set_is_made_and_goes_on(tmp_path):
    folder = tmp_path / "schedules"
    command = [sys.executable, str(EXAMPLES / "schedule_dataset.py"), "--folder", str(folder), "--points", "300"]
    chosen = []
    for _ in range(2):  # the second time everything is there
        done = subprocess.run(command + chosen, capture_output=True, text=True)
        assert "campaign: 3" in done.stdout and "landscape: " in done.stdout, done.stderr
        assert done.returncode == 0 or "of the points failed" in done.stderr
        chosen = ["--hardware-class", json.loads((folder / "data/provenance.json").read_text())["hardware"][0][0]]
    none = subprocess.run([*command, "--hardware-class", "cpu:z"], capture_output=True, text=True)
    assert none.returncode == 1 and "no program has a figure of its untuned schedule" in none.stderr
    assert (folder / "landscape.png").stat().st_size > 1000 and "| best of 5 |" in (folder / "landscape.md").read_text()
    card = (folder / "data/README.md").read_text()
    assert "How the points were drawn" in card and "**region**" in card and "license: cc-by-4.0" in card


def test_the_data_set_has_no_program_that_models_are_judged_by(monkeypatch):
    from loopfleet.rows import program_of
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.syspath_prepend(str(EXAMPLES.parents[2] / "bench/cases"))
    spec = importlib.import_module("schedule_dataset").specification()
    judged = importlib.import_module("search").TEST_PRODUCTS
    assert spec.points == 280_000 and len(judged) == 25
    kinds = {benchmark.split("://")[1].split("/")[0] for benchmark in spec.benchmarks}
    assert kinds == {"mm-v0", "conv-v0", "program-v0"}
    trained = {program_of(benchmark, None)[0] for benchmark in spec.benchmarks}
    assert len(trained) == len(spec.benchmarks) and None not in trained
    assert not trained & {program_of(benchmark, None)[0] for benchmark in judged}


def test_cost_models_of_an_exported_campaign(run, tmp_path):
    learning_package("torch")
    learning_package("xgboost")
    facts = json.loads(run("cost_model", "--points", "240", "--programs", "16", "--suspect", "--folder",
                           str(tmp_path / "work")).read_text())
    assert set(facts["judgements"]) == {"trees", "network", "comparison", "comparison_network", "policy", "random"}
    assert all(count >= 1 for count in facts["programs"].values()) and sum(facts["programs"].values()) <= 16
    for figures in facts["judgements"].values():
        assert 0 < figures["peak_at_1"] <= figures["peak_at_5"] <= 1 and 0 <= figures["pairwise_accuracy"] <= 1


def test_a_random_race_counts_equal_evaluations(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    race = importlib.import_module("race")
    walks = race.schedules(random_policy, "benchmark://mm64_256_16_range-v0/mm64_64_64", 12, seed=3)
    keys = {loopfleet.Walk(benchmark="benchmark://mm64_256_16_range-v0/mm64_64_64").tree_key}
    for walk in walks:
        again = loopfleet.Walk(benchmark="benchmark://mm64_256_16_range-v0/mm64_64_64")
        for name in walk:
            again.apply(name)
        keys.add(again.tree_key)
    assert len(keys) == 13, "each another tree, and none is the untuned one"


# ---- loopfleet.compiler_gym

def test_its_parts_are_there_at_once():
    names = "cg.wrappers.TimeLimit, cg.leaderboard, cg.util, cg.datasets"
    subprocess.run([sys.executable, "-c", f"import loopfleet.compiler_gym as cg; {names}"], check=True)


def test_the_older_contract():
    with compiler_gym.LoopTool(reward_space=None) as env:
        observation = env.reset(benchmark="benchmark://loop_tool-cpu-v0/1024")
        assert observation.tolist() == [0, 1024, 0]
        env.step(env.action_space["toggle_mode"])
        env.step(env.action_space["up"])
        observation, reward, done, info = env.step(env.action_space["toggle_mode"])
        assert (observation.tolist(), reward, done) == ([1, 1, 0], 0, False)
        observation, reward, done, info = env.multistep([env.action_space["up"]] * 2)
        assert observation.tolist() == [1, 3, 0]
        assert env.observation["loop_tree"].startswith("for a in 341 r 1 : L0")
        forked = env.fork()
        assert forked.observation["loop_tree"] == env.observation["loop_tree"]
        assert env.action_space.to_string(env.actions) == "toggle_mode,up,toggle_mode,up,up"


def test_an_episode_that_is_cut_is_done():
    env = compiler_gym.make("loopfleet/LoopTune-v0", reward_space=None, episode_steps=2)
    env.reset()
    assert env.step(0)[2] is False
    *_, done, info = env.step(0)
    assert done and info["TimeLimit.truncated"]
    with pytest.raises(LookupError, match="nearest: loop_tool-v0"):
        compiler_gym.make("loop_tol-v0")


def test_its_reward_is_measured(client):
    env = compiler_gym.make("loop_tool-v0", client=client)
    env.reset(benchmark="benchmark://loop_tool-cpu-v0/4096", reward_space="flops")
    observation, reward, done, info = env.multistep(
        [env.action_space[name] for name in ("toggle_mode", "up", "toggle_mode", *["up"] * 7)])
    assert env.episode_reward == pytest.approx(reward) and np.isfinite(reward)
    assert not done and observation.tolist() == [1, 8, 0]


SWEEP = '''
import loopfleet.compiler_gym as compiler_gym
from loopfleet.compiler_gym.util.runfiles_path import create_user_logs_dir
from loopfleet.compiler_gym.util.timer import Timer

def checked(env, action):
    observation, reward, done, info = env.step(action)
    assert not done, info
    return observation

logs = create_user_logs_dir("sweep")
with compiler_gym.make("loop_tool-v0") as env, Timer() as timer:
    env.reset(benchmark=env.datasets.benchmark(uri="loop_tool-cpu-v0/4096"), action_space="simple")
    for action in [3, 0, 1, 3, 0]:
        checked(env, action)
    inner, step = 1, 16
    while inner + step <= 64:
        env.observation_space = None
        assert checked(env, [1] * (step - 1)) is None
        env.observation_space = "flops"
        flops = checked(env, 1)
        inner += step
        print(inner, float(flops), file=open(logs / "flops.txt", "a"))
assert timer.time > 0 and str(timer)
'''


def test_a_sweep_in_the_manner_of_compilergyms_own(client, cluster, monkeypatch, tmp_path):
    monkeypatch.setenv("COMPILER_GYM_LOGS", str(tmp_path))
    monkeypatch.setattr(walk_env, "Client", type(client))  # a patient one
    exec(compile(SWEEP, "sweep.py", "exec"), {})
    (log,) = tmp_path.glob("sweep/*/flops.txt")
    widths = [line.split() for line in log.read_text().splitlines()]
    assert [row[0] for row in widths] == ["17", "33", "49"] and all(float(row[1]) > 0 for row in widths)


def test_its_wrappers():
    from loopfleet.compiler_gym import wrappers

    def env():
        return compiler_gym.make("loop_tool-v0", reward_space=None)

    uris = [f"benchmark://loop_tool-cpu-v0/{size}" for size in (4, 8)]
    limited = wrappers.TimeLimit(env(), 2)
    for _ in range(2):
        limited.reset()
        assert limited.step(0)[2] is False and limited.fork().step([0, 1])[2] is True
        *_, done, info = limited.step(0)
        assert done and info["TimeLimit.truncated"]
    limited = wrappers.TimeLimit(env(), 3)
    limited.reset()
    assert limited.multistep([0, 0])[2] is False and limited.multistep(iter([0]))[2] is True
    limited = wrappers.TimeLimit(compiler_gym.make("loopfleet/LoopTune-v0", reward_space=None, episode_steps=2), 2)
    limited.reset()
    limited.step(0)
    *_, done, info = limited.step(0)
    assert done and info["TimeLimit.truncated"], "as the environment itself said"

    def sizes(wrapped, times):
        return [int(wrapped.reset()[1]) for _ in range(times)]

    assert sizes(wrappers.CycleOverBenchmarks(env(), uris), 5) == [4, 8, 4, 8, 4]
    assert sizes(wrappers.CycleOverBenchmarksIterator(env(), lambda: iter(uris)), 3) == [4, 8, 4]
    assert sizes(wrappers.IterateOverBenchmarks(env(), uris), 2) == [4, 8]
    with pytest.raises(StopIteration):
        sizes(wrappers.IterateOverBenchmarks(env(), uris), 3)
    assert set(sizes(wrappers.RandomOrderBenchmarks(env(), uris, np.random.default_rng(1)), 30)) == {4, 8}

    class Named(wrappers.ActionWrapper):
        def action(self, action):
            return self.action_space[action]

    class Size(wrappers.ObservationWrapper):
        def convert_observation(self, observation):
            return int(observation[1])

    class Doubled(wrappers.RewardWrapper):
        def convert_reward(self, reward):
            return 2 * reward + 1

    with Doubled(Size(Named(env()))) as wrapped:
        assert wrapped.reset(benchmark=uris[0]) == 4
        observation, reward, done, _ = wrapped.step("toggle_mode")
        assert (observation, reward, done) == (4, 1, False) and wrapped.commandline() == "toggle_mode"


def test_a_fork_of_a_wrapper_takes_no_benchmark_from_it():
    from loopfleet.compiler_gym import wrappers
    uris = [f"benchmark://loop_tool-cpu-v0/{size}" for size in (4, 8, 16)]

    def rest(make, *options):
        wrapped = make(compiler_gym.make("loop_tool-v0", reward_space=None), *options)
        wrapped.reset()
        fork = wrapped.fork()
        return [int(each.reset()[1]) for each in (fork, wrapped, fork, wrapped)]

    own = [8, 8, 16, 16]
    assert rest(wrappers.IterateOverBenchmarks, uris) == rest(wrappers.CycleOverBenchmarks, uris) == own
    assert rest(wrappers.CycleOverBenchmarksIterator, lambda: iter(uris)) == own
    assert rest(wrappers.IterateOverBenchmarks, [*uris, *uris], True) == [8, 16, 4, 8]
    assert rest(wrappers.CycleOverBenchmarks, uris, True) == [8, 16, 4, 8]
    one = np.random.default_rng(1).integers(3, size=5)[1:]
    assert rest(wrappers.RandomOrderBenchmarks, uris, np.random.default_rng(1)) == [[4, 8, 16][i] for i in one]


def test_what_is_assigned_to_a_wrapper_reaches_its_environment():
    from loopfleet.compiler_gym import wrappers
    wrapped = wrappers.TimeLimit(wrappers.ConstrainedCommandline(compiler_gym.make("loop_tool-v0"), ["up", "down"]), 9)
    env = wrapped.unwrapped
    wrapped.reward_space, wrapped.benchmark = None, "benchmark://loop_tool-cpu-v0/8"
    assert env.reward_space is None is wrapped.reward_space
    assert int(wrapped.reset()[1]) == 8 and wrapped.benchmark == env.benchmark == "benchmark://loop_tool-cpu-v0/8"
    wrapped.observation_space = None
    assert wrapped.reset() is None is env.observation_space
    wrapped.observation_space = "action_state"
    assert wrapped.observation_space == env.observation_space and wrapped.reset() in env.observation_space
    assert wrapped.action_space.n == 2 < env.action_space.n
    with pytest.raises(LookupError, match="nearest: flops"):
        wrapped.reward_space = "flop"

    class Size(wrappers.ObservationWrapper):
        def __init__(self, env):
            super().__init__(env)
            self.observation_space = gym.spaces.Discrete(100)

        def convert_observation(self, observation):
            return int(observation[1])

    sized = wrappers.TimeLimit(Size(wrapped), 9)
    assert sized.observation_space == gym.spaces.Discrete(100) and sized.reset() in sized.observation_space


# ---- its LLVM environment

QSORT = "benchmark://small-v0/qsort"


def test_llvm_with_the_older_contract(client):
    for id in ("llvm-ic-v0", "llvm-autophase-ic-v0", "loopfleet/LLVM-codesize-v0"):
        assert id in compiler_gym.COMPILER_GYM_ENVS
    with compiler_gym.make("llvm-autophase-ic-v0", client=client) as env:
        observation = env.reset(benchmark=QSORT)
        assert observation.shape == (56,)
        observation, reward, done, info = env.step(env.action_space["-mem2reg"])
        assert not done and reward > 0 and not info["action_had_no_effect"]
        observation, more, done, info = env.multistep([env.action_space[flag] for flag in ("-gvn", "-simplifycfg")])
        assert env.episode_reward == pytest.approx(reward + more)
        assert env.action_space.to_string(env.actions) == "-mem2reg,-gvn,-simplifycfg" == env.state.commandline
        forked = env.fork()
        assert forked.step(env.action_space["-dce"])[2] is False and len(env.actions) == 3
        env.observation_space, env.reward_space = "InstCount", "IrInstructionCount"
        before = int(env.observation["IrInstructionCount"])
        observation, reward, *_ = env.step(env.action_space["-instcombine"])
        assert observation.shape == (70,) and reward == before - observation[0]
    assert compiler_gym.make("llvm-v0", client=client).reset() is None


def test_llvm_data_sets():
    datasets = compiler_gym.make("llvm-v0").datasets
    assert len(datasets["small-v0"]) == 5 and QSORT in datasets["benchmark://small-v0"].benchmark_uris()
    assert len(datasets["debian-v0"]) >= 12
    csmith = datasets["generator://csmith-v0"]
    assert next(iter(csmith)) == "generator://csmith-v0/0" and csmith.size == 1 << 32
    assert datasets.benchmark("generator://csmith-v0/7") == csmith.benchmark("7")
    assert csmith.random_benchmark().startswith("generator://csmith-v0/")
    for wrong, said in (("benchmark://small-v0/qsrt", "nearest: qsort"), ("generator://csmith-v0/-1", "no program"),
                        ("benchmark://smal-v0/qsort", "nearest: benchmark://small-v0")):
        with pytest.raises(LookupError, match=said):
            datasets.benchmark(wrong)
    assert datasets.benchmark("small-v0/qsort") == datasets["small-v0"].benchmark("small-v0/qsort") == QSORT


def test_llvm_wrappers(client):
    from loopfleet.compiler_gym import wrappers

    def env():
        return compiler_gym.make("llvm-ic-v0", client=client, benchmark=QSORT)

    few = wrappers.ConstrainedCommandline(env(), ["-gvn", "-mem2reg"])
    few.reset()
    few.step(1)
    assert few.state.commandline == "-mem2reg" and few.action_space.n == 2
    assert few.actions == [1] and few.action_space.to_string(few.actions) == "-mem2reg"
    fork = few.fork()
    fork.reset()
    fork.multistep(few.actions)
    assert fork.state == few.state
    with pytest.raises(LookupError, match="nearest: -gvn"):
        wrappers.ConstrainedCommandline(env(), ["-gvm"])
    ends = wrappers.CommandlineWithTerminalAction(env())
    ends.reset()
    assert ends.action_space.n == 125
    assert ends.step(ends.action_space["-mem2reg"])[2] is False
    observation, reward, done, info = ends.step(ends.action_space["# end-of-episode"])
    assert done and reward == 0 and info["terminal_action"] and ends.state.commandline == "-mem2reg"
    limited = wrappers.TimeLimit(env(), 2)
    limited.reset()
    assert [limited.step(0)[2] for _ in range(2)] == [False, True]
    few.step("-gvn")
    assert few.state.commandline == "-mem2reg,-gvn"
    for wrapped, wrong, said in ((few, -1, "no action -1; valid: 0 to 1"), (few, 2, "no action 2; valid: 0 to 1"),
                                 (few, "-gvm", "nearest: -gvn"), (ends, "-gvm", "nearest: -gvn"),
                                 (ends, 125, "no action 125; valid: 0 to 124")):
        with pytest.raises(LookupError, match=said):
            wrapped.step(wrong)
    assert few.state.commandline == "-mem2reg,-gvn"


def test_masks_are_of_a_wrappers_own_actions(client):
    from loopfleet.compiler_gym import wrappers

    def env():
        return compiler_gym.make("llvm-ic-v0", client=client, benchmark=QSORT)

    few = wrappers.ConstrainedCommandline(env(), ["-mem2reg", "-barrier", "-gvn"])
    few.reset()
    assert few.action_masks().tolist() == [True, False, True]
    few.step(0)
    assert few.step(0)[3]["action_mask"].tolist() == few.action_masks().tolist() == [0, 0, 1]
    idle = wrappers.ConstrainedCommandline(env(), ["-barrier"])
    idle.reset()
    assert idle.action_masks().tolist() == [True], "never none"
    ends = wrappers.CommandlineWithTerminalAction(few)
    masks = ends.step(2)[3]["action_mask"]
    assert masks.tolist() == ends.action_masks().tolist() == [1, 0, 1, 1] and masks.dtype == np.int8
    assert ends.action_space.contains(ends.action_space.sample(masks)) and ends.action_masks().dtype == bool


def test_a_reward_that_a_wrapper_changes_is_in_the_total(client):
    from loopfleet.compiler_gym import wrappers

    class Doubled(wrappers.RewardWrapper):
        def convert_reward(self, reward):
            return [2 * each for each in reward] if isinstance(reward, list) else 2 * reward

    for id, actions in (("llvm-ic-v0", ["-mem2reg", "-simplifycfg"]), ("loopfleet/LoopTune-v0", ["split_4", "split_2"])):
        options = {"benchmark": QSORT} if id == "llvm-ic-v0" else {}
        wrapped = Doubled(compiler_gym.make(id, client=client, **options))
        wrapped.reset()
        total = sum(wrapped.step(action)[1] for action in actions)
        assert total != 0 and wrapped.episode_reward == pytest.approx(total)
        assert wrapped.state.reward == pytest.approx(total / 2), "what validate() compares"
    wrapped.step("down", reward_spaces=["gflops"])
    assert wrapped.episode_reward == pytest.approx(total)


def test_the_leaderboard_of_instruction_counts(client, tmp_path, capsys):
    from loopfleet.compiler_gym.leaderboard.llvm_instcount import eval_llvm_instcount_policy
    from loopfleet.envs import read_states

    def policy(env):
        env.step(env.action_space["-mem2reg"])
        env.step(env.action_space["-simplifycfg"])

    file = tmp_path / "results.csv"
    uris = [QSORT, "benchmark://small-v0/bitcount"]
    states = eval_llvm_instcount_policy(policy, benchmarks=uris, runs=2, results=str(file), validate=True,
                                        client=client)
    assert file.read_text().splitlines()[0] == "benchmark,reward,walltime,commandline"
    with open(file) as rows:
        assert [state.commandline for state in read_states(rows)] == ["-mem2reg,-simplifycfg"] * 4
    assert states[0].reward == states[2].reward > 0
    assert "4 states, geometric mean of rewards" in capsys.readouterr().out
    # What -Oz does not make smaller is named and left out.
    (tmp_path / "one.c").write_text("int one(void) { return 1; }")
    least = client.add_program(compile_to_bitcode([tmp_path / "one.c"], ["-O1"], 60))
    alone = eval_llvm_instcount_policy(policy, benchmarks=uris[:1], runs=1, results=str(file), validate=False, client=client)
    mean = capsys.readouterr().out.rpartition(" ")[2].strip()
    eval_llvm_instcount_policy(policy, benchmarks=[uris[0], least], runs=1, results=str(file), validate=False, client=client)
    assert f"geometric mean of rewards {mean}, without {least}, which -Oz does not make smaller" in capsys.readouterr().out
    assert alone[0].reward == states[0].reward


# ---- the agent that orders passes


def test_columns_of_a_graph_are_those_of_networkx(client):
    (outcome,) = client.evaluate_many([{"benchmark": QSORT, "observe": ["Programl"]}]).outcomes
    graph = loopfleet.programl.programl_columns(outcome.observed["Programl"])
    env = compiler_gym.make("llvm-v0", client=client, benchmark=QSORT)
    env.reset()
    whole = env.observation["Programl"]
    assert [graph.texts[number] for number in graph.node_text] == [
        whole.nodes[node]["text"] for node in range(whole.number_of_nodes())]
    edges = sorted((source, target, data["flow"], data["position"]) for source, target, data in whole.edges(data=True))
    assert edges == sorted(zip(*(column.tolist() for column in (
        graph.edge_source, graph.edge_target, graph.edge_flow, graph.edge_position))))
    with pytest.raises(ValueError):
        loopfleet.programl.programl_columns(b"no graph")


def test_the_agent_trains_and_is_judged(run):
    learning_package("torch")
    facts = json.loads(run("llvm_gatv2_ppo", "--train-seeds", "8", "--episode", "5", "--width", "4", "--batch", "20",
                           "--steps", "60", "--evaluations", "10", "--seeds", "2", "--epochs", "1",
                           "--test", QSORT, "benchmark://small-v0/bitcount").read_text())
    judged = json.loads(run("llvm_gatv2_ppo", "--judge", "--episode", "5", "--evaluations", "10", "--seeds", "2",
                            "--test", QSORT, "benchmark://small-v0/bitcount").read_text())
    def without_samples(found):  # the agent draws in the order in which answers come
        return {**found, "oz_ratio": {**found["oz_ratio"], "agent": None},
                "instructions": {uri: {**row, "agent": None} for uri, row in found["instructions"].items()}}

    assert without_samples(judged) == without_samples(facts)
    curve = facts["training"]["curve"]
    assert len(curve) >= 2 and curve[-1]["steps"] >= 60 and all(0 < row["oz_ratio"] for row in curve)
    assert set(facts["oz_ratio"]) == {"-O3", "no pass", "greedy", "random search", "agent"}
    for uri, row in facts["instructions"].items():
        assert all(best <= row["no pass"][0] for name in ("greedy", "random search", "agent") for best in row[name]), uri
        assert facts["states_with_graph"][uri] == 12  # two episodes of five passes
