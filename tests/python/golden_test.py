"""The golden cases of the originals, through the environments, without a network."""

import json
import os
import pathlib

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest

import loopfleet
from loopfleet.envs import LOOPTUNE_ACTIONS, LoopTuneEnv

GOLDEN = pathlib.Path(os.environ["LOOPFLEET_SOURCE"]) / "tests/golden/looptree"


def cases(name):
    with open(GOLDEN / name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def stripped(text):
    return [line.rstrip() for line in text.splitlines()]


def test_simple_dialect():
    env = gym.make("loop_tool-v0", reward_space=None, action_space="split")
    for case in cases("simple.jsonl"):
        observation, info = env.reset(benchmark=case["uri"])
        assert info["action_mask"].tolist() == [1] * 5
        for i, action in enumerate(case["actions"]):
            observation, reward, terminated, truncated, info = env.step(env.action_space[action])
            assert observation.tolist() == case["action_states"][i], case
            assert (reward, terminated, truncated) == (0, False, False)
        assert env.observation["action_state"].tolist() == case["action_state"]
        assert stripped(env.observation["loop_tree"]) == stripped(case["loop_tree"]), case
        assert env.observation["mode"] == case["mode"]
        assert env.observation["thread"] == case["thread"]


def replayed(case, features):
    env = LoopTuneEnv(case["ir"], action_space=case.get("action_space"), reward_space=None, rules="loop_nest",
                      features=features, merge_all_first=case.get("merge_all_first", False), episode_steps=None)
    env.reset(options={"start_cursor": case.get("start_cursor", 0)})
    return env


def check_legal(env, legal):
    names = [name for name, allowed in zip(env.action_space.names, env.action_masks()) if allowed]
    assert names == legal


def take(env, step):
    """Takes one recorded step. Undo is an action of the walk, but not of every recorded action space."""
    if step["action"] in env.action_space.names:
        *_, info = env.step(step["action"])
        return info
    env.walk.apply(step["action"])
    return None


@pytest.mark.parametrize("part", range(4))
def test_agent_dialect(part):
    for number, case in enumerate(cases("agent.jsonl")):
        if number % 4 != part:
            continue
        env = replayed(case, "agent20")
        for step in case["steps"]:
            legal_before = [name for name, ok in zip(env.action_space.names, env.action_masks()) if ok]
            info = take(env, step)
            if info is not None:
                assert (step["action"] in legal_before) == step["legal"]
                assert step["legal"] or info["action_had_no_effect"]
            assert env.observation["cursor"] == step["cursor"]
            if "loop_tree" in step:
                assert stripped(env.observation["loop_tree"]) == stripped(step["loop_tree"])
                check_legal(env, step["legal_actions_after"])
        if not case["steps"]:  # of undo cases only the end was recorded
            for action in case["actions"]:
                env.walk.apply(action)
        assert stripped(env.observation["loop_tree"]) == stripped(case["loop_tree"])
        assert env.observation["flop_count"] == case["flops_count"]
        check_legal(env, case["legal_actions_after"])
        rows = np.asarray(case["loops_tensor"], np.float32).reshape(-1)[:200]
        np.testing.assert_allclose(env.observation["loops_tensor"][:len(rows)], rows, rtol=1e-6)
        assert not env.observation["loops_tensor"][len(rows):].any()
        np.testing.assert_allclose(env.observation["stride_tensor"], case["stride_histogram"], rtol=1e-6)


def test_agent_dialect_with_the_older_features():
    for case in cases("agent_58_features.jsonl"):
        env = replayed(case, "agent58")
        for action in case["actions"]:
            env.walk.apply(action)
        assert stripped(env.observation["loop_tree"]) == stripped(case["loop_tree"])
        rows = np.asarray(case["loops_tensor"], np.float32).reshape(-1)[:1160]
        np.testing.assert_allclose(env.observation["loops_tensor"][:len(rows)], rows, rtol=1e-6)


def test_the_walk_of_compilergyms_documents():
    env = gym.make("loop_tool-v0", reward_space=None)
    env.reset(benchmark=env.datasets.benchmark(uri="benchmark://loop_tool-cuda-v0/1024"))
    tree = """for a in {0} : L0{1}
 for a' in {2} : L1{3}
  for a'' in 1 : L2
   %0[a] <- read()
  for a'' in 1 : L4
   %1[a] <- read()
  for a'' in 1 : L6
   %2[a] <- add(%0, %1)
  for a'' in 1 : L8
   %3[a] <- write(%2)"""

    def check(*parts):
        assert stripped(env.observation["loop_tree"]) == tree.format(*parts).splitlines()

    check(1024, " [thread]", 1, "")
    env.step(env.action_space["toggle_thread"])
    check(1024, "", 1, "")
    env.multistep([env.action_space[name] for name in ("toggle_mode", "up")])
    assert env.observation["action_state"].tolist() == [1, 1, 0]
    env.step(env.action_space["toggle_thread"])
    check(1024, "", 1, " [thread]")
    observation, *_ = env.multistep([env.action_space[name] for name in ("toggle_mode", "up", "up")])
    check("341 r 1", "", 3, " [thread]")
    assert observation.tolist() == [1, 3, 0]


def test_graphs_are_those_of_the_core():
    env = LoopTuneEnv(reward_space=None)
    env.reset()
    env.multistep(["down", "split_16"])
    tree = env.observation["ir_tree_networkx"]
    assert isinstance(tree, nx.MultiDiGraph) and nx.is_directed_acyclic_graph(tree)
    assert len(tree) == len(env.observation["loop_tree"].splitlines())
    graph = env.observation["ir_graph_networkx"]
    assert {kind for _, kind in graph.nodes(data="kind")} == {"operation", "loop", "data"}
    assert set(tree) <= set(graph)


def test_looptunes_seven_actions():
    env = LoopTuneEnv(action_space="looptune", reward_space=None, features="agent20")
    assert env.action_space.names == list(LOOPTUNE_ACTIONS)
    assert env.observation_space.shape == (200,)
    assert loopfleet.envs.LoopTuneEnv().observation_space.shape == (1160,)
