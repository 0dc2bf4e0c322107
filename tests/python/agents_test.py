"""DQN and PPO of loopfleet.models on a made-up environment, their files, the replay, and actors in processes of their
own on a real cluster."""

import multiprocessing
import os
import subprocess
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from learning_packages import learning_package

import loopfleet
from loopfleet import models
from loopfleet.envs import LoopTuneEnv
from loopfleet.models import BadModelFile, ModelError
from loopfleet.models.mlp import forward, legal_best
from loopfleet.models.replay import Replay, Transitions
from loopfleet.models.training import Returns, random_policy, squash

ACTIONS = ["left", "right", "never"]


class Corridor:
    """Episodes of three steps; right earns 1 where the sign is up, left where it is down; `never` is illegal."""

    def __init__(self, num_envs=8):
        self.num_envs = num_envs
        self.single_observation_space = SimpleNamespace(shape=(2,))
        self.single_action_space = SimpleNamespace(names=ACTIONS)

    def reset(self, seed=None):
        self.rng, self.step_number = np.random.default_rng(seed), 0
        return self.observe(), {"action_mask": self.mask()}

    def mask(self):
        return np.tile(np.array([1, 1, 0], np.int8), (self.num_envs, 1))

    def observe(self):
        self.sign = self.rng.choice([-1.0, 1.0], self.num_envs)
        return np.stack([self.sign, np.full(self.num_envs, self.step_number)], 1).astype(np.float32)

    def step(self, action):
        assert (action < 2).all(), "illegal"
        reward = (np.where(action == 1, 1, -1) == self.sign).astype(np.float64)
        self.step_number = (self.step_number + 1) % 3
        over = np.full(self.num_envs, self.step_number == 0)
        return self.observe(), reward, np.zeros(self.num_envs, bool), over, {"action_mask": self.mask()}


@pytest.mark.parametrize("name", ["DQN", "PPO"])
@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED, "NextStep"])
def test_environments_that_reset_in_another_step_are_refused(name, mode):
    learning_package("torch")
    envs = Corridor()
    envs.metadata = {"autoreset_mode": mode}
    with pytest.raises(ModelError, match="not on LoopTuneEnv: make one with WalkVectorEnv"):
        getattr(models, name).for_envs(LoopTuneEnv(reward_space=None))
    agent = getattr(models, name).for_envs(envs)
    with pytest.raises(ModelError, match=f"not {AutoresetMode(mode).value}: .*SAME_STEP"):
        agent.train(envs, 100)
    envs.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
    assert agent.train(envs, 100).steps >= 100


@pytest.mark.parametrize("name, steps", [("DQN", 2400), ("PPO", 4000)])
def test_an_agent_learns_what_earns_and_is_kept_in_a_file(name, steps, tmp_path):
    learning_package("torch")
    said = []
    agent = getattr(models, name).for_envs(Corridor())
    returns = agent.train(Corridor(), steps, on_mark=said.append)
    assert returns.steps >= steps and len(returns.curve) == len(said) > 1
    assert returns.curve[-1][1] > 2.4 > returns.curve[0][1], "3 are to be earned, 1.5 by chance"
    observations = np.array([[1, 0], [-1, 2]], np.float32)
    masks = np.array([[1, 1, 0], [1, 1, 0]])
    rng, policy = np.random.default_rng(0), agent.policy()
    chosen = [policy(observations[0], masks[0], rng) for _ in range(40)]
    assert set(chosen) <= {0, 1} and chosen.count(1) > 25
    agent.save(tmp_path / "agent.npz")
    again = type(agent).load(tmp_path / "agent.npz")
    ours, theirs = (each.values(observations) if name == "DQN" else each.probabilities(observations, masks)
                    for each in (agent, again))
    assert ours == pytest.approx(theirs)
    assert again.act(observations, masks).shape == (2,)
    type(agent)(2, ACTIONS, gamma=0.9).save(tmp_path / "other.npz")
    assert type(agent).load(tmp_path / "other.npz").gamma == 0.9
    assert type(agent).load(tmp_path / "other.npz", gamma=0.5).gamma == 0.5
    with pytest.raises(BadModelFile, match=f"holds a {name}"):
        models.PolicyModel.load(tmp_path / "agent.npz")
    with pytest.raises(ModelError, match="at least one action"):
        type(agent)(2, [])
    with np.load(tmp_path / "agent.npz") as file:
        arrays = dict(file)
    arrays.pop(next(key for key in arrays if key.endswith("weight")))
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(BadModelFile, match="damaged"):
        type(agent).load(tmp_path / "bad.npz")


class Outages(Corridor):
    """Some steps have no figure, which ends their episode; their reward means nothing."""

    def __init__(self, share, is_gymnasiums=False):
        super().__init__()
        self.share, self.is_gymnasiums = share, is_gymnasiums

    def step(self, action):
        following, reward, terminated, truncated, info = super().step(action)
        missing = self.rng.random(self.num_envs) < self.share
        told = {"error_type": np.where(missing, "WORKER_LOST", None), "_error_type": missing}
        info.update({"final_info": told} if self.is_gymnasiums else told)
        return following, np.where(missing, -1000, reward), terminated, truncated | missing, info


@pytest.mark.parametrize("is_gymnasiums", [False, True])
def test_nothing_is_learned_from_steps_without_a_figure(is_gymnasiums):
    learning_package("torch")
    agent = models.DQN.for_envs(Corridor())
    agent.train(Outages(0.3, is_gymnasiums), 400)
    kept = agent.replay._columns.reward[:len(agent.replay)]
    assert 200 < len(kept) < 350 and set(kept) == {0, 1}
    agent = models.PPO.for_envs(Corridor())
    updates, update = [], agent._update
    agent._update = lambda columns, last: updates.append(columns) or update(columns, last)
    assert agent.train(Outages(0.1, is_gymnasiums), 4000).steps >= 4000
    assert any((columns[5] < 0).any() for columns in updates)
    masks, observations = np.array([[1, 1, 0]]), np.array([[1, 0]], np.float32)
    assert agent.probabilities(observations, masks)[0, 1] > 0.8, "it learned from the others"


@pytest.mark.parametrize("name", ["DQN", "PPO"])
def test_a_fleet_that_measures_nothing_ends_the_training_with_nothing_learned(name):
    learning_package("torch")
    agent, other = (getattr(models, name).for_envs(Corridor()) for _ in range(2))
    for steps in (1, 800):
        assert agent.train(Outages(1.0), steps).steps >= steps
    observations, masks = np.array([[1, 0], [-1, 2]], np.float32), np.array([[1, 1, 0]] * 2)
    ours, theirs = (each.values(observations) if name == "DQN" else each.probabilities(observations, masks)
                    for each in (agent, other))
    assert (ours == theirs).all()


def test_actors_send_no_steps_without_a_figure():
    learning_package("torch")
    from loopfleet import _core
    from loopfleet.models.distributed import _walked

    class Learner:
        def submit_jobs(self, jobs):
            return [self.submit_job(job) for job in jobs]

        def submit_job(self, job):
            future = Future()
            future.set_result(_core.failed_outcome("CANCELLED", "as if"))
            return future

    options = models.ActorOptions(["benchmark://mm-v0/mm32_32_32"], envs=3, batch=60)
    layers = models.DQN(1160, [""] * 7).layers()
    published = SimpleNamespace(version=1, read=lambda: (1, layers))
    batch = next(_walked(0, 1, options, Learner(), published, seed=1))
    assert batch.steps == 60 and 0 < len(batch.errors) < 60, "those that moved the cursor alone"
    assert not batch.rows.reward.any() and not batch.rows.over.any()


@pytest.mark.parametrize("name", ["DQN", "PPO"])
def test_a_mask_that_allows_nothing_is_refused(name):
    learning_package("torch")
    envs = Corridor()
    agent = getattr(models, name).for_envs(envs)
    masks = np.array([[1, 1, 0], [0, 0, 0]])
    for use in (lambda: agent.act(np.zeros((2, 2), np.float32), masks),
                lambda: agent.policy()(np.zeros(2, np.float32), masks[1], np.random.default_rng(0)),
                lambda: random_policy(np.zeros(2, np.float32), masks[1], np.random.default_rng(0))):
        with pytest.raises(ModelError, match="no action is legal"):
            use()
    envs.mask = lambda: np.zeros((envs.num_envs, 3), np.int8)
    with pytest.raises(ModelError, match="no action is legal in row 0"):
        agent.train(envs, 100)


@pytest.mark.parametrize("name", ["DQN", "PPO"])
def test_an_agent_proposes_schedules_without_a_cluster(name):
    learning_package("torch")
    uri = "benchmark://mm-v0/mm80_112_48"
    env = LoopTuneEnv(uri, action_space="looptune", reward_space=None)
    agent = getattr(models, name)(env.observation_space.shape[0], env.action_space.names, seed=4)
    proposals = agent.propose("mm-v0/mm80_112_48", 6)
    walks = [loopfleet.Walk(benchmark=uri) for _ in proposals]
    for walk, actions in zip(walks, proposals):
        assert len(actions) <= 10 and all(walk.apply(action) for action in actions)
    assert len({walk.tree_key for walk in walks}) == len(proposals) == 6, "each another tree"
    assert agent.propose(uri, 6) == proposals and agent.propose(uri, 6, seed=1)[0] == proposals[0]
    assert agent.propose(ir=walks[0].observe("ir"), count=1) and agent.start_for(uri, None) == proposals[:4]

    observation, info = env.reset()
    over = False
    while not over:
        rows, masks = observation[None], info["action_mask"][None]
        liked = agent.values(rows) if name == "DQN" else agent.probabilities(rows, masks)
        observation, _, terminated, truncated, info = env.step(int(legal_best(liked, masks)[0]))
        over = terminated or truncated
    assert env.observation["tree_key"] == walks[0].tree_key.hex(), "the first is its favourite walk in LoopTune-v0"

    with pytest.raises(loopfleet.JobError, match="mm-v0"):
        agent.propose("benchmark://mm-v9/mm8_8_8")
    with pytest.raises(ModelError, match="sees 2 numbers, .* only agents of LoopTune-v0"):
        getattr(models, name).for_envs(Corridor()).propose(uri)


def test_a_search_starts_with_what_an_agent_proposes(client):
    learning_package("torch")
    env, told = LoopTuneEnv(action_space="looptune", reward_space=None), []
    agent = models.DQN(env.observation_space.shape[0], env.action_space.names)

    def strategy(most, results):
        told.extend(results)
        return []

    loopfleet.search("mm-v0/mm32_32_32", strategy, evaluations=20, start=agent, client=client, confirm=False)
    proposed = agent.start_for("mm-v0/mm32_32_32", None)
    assert [actions for actions, _ in told] == [[], *proposed] and all(ns for _, ns in told)


def test_actors_compute_the_values_of_the_learner():
    learning_package("torch")
    agent = models.DQN(5, ACTIONS, seed=3)
    x = np.random.default_rng(1).random((7, 5), np.float32) * 100
    values = forward(agent.layers(), squash(x))
    assert values == pytest.approx(agent.values(x), abs=1e-5)
    masks = np.array([[1, 0, 1]] * 7, bool)
    assert (legal_best(values, masks) == agent.act(x, masks)).all()
    with pytest.raises(ModelError, match="replay is empty"):
        agent.learn()


def transitions(numbers):
    numbers = np.asarray(numbers, np.float32)
    return Transitions(numbers[:, None], np.zeros(len(numbers), np.int64), numbers, numbers[:, None],
                       np.ones((len(numbers), 2), bool), np.zeros(len(numbers), np.float32))


def test_a_replay_keeps_the_last_and_draws_by_priority():
    rng = np.random.default_rng(0)
    even = Replay(4, 1, 2)
    even.add(transitions(range(6)))
    _, rows, importance = even.draw(400, rng)
    assert set(rows.reward) == {2, 3, 4, 5} and (importance == 1).all() and len(even) == 4
    replay = Replay(8, 1, 2, priority=1.0)
    replay.add(transitions([0, 1, 2]), np.array([1.0, -8.0, 1.0]))
    places, rows, importance = replay.draw(1000, rng)
    assert 0.7 < np.mean(rows.reward == 1) < 0.9
    assert importance[rows.reward == 1].max() < importance[rows.reward == 0].min() == 1
    replay.correct(places[rows.reward == 1][:1], np.array([0.0]))
    assert np.mean(replay.draw(1000, rng)[1].reward == 1) < 0.05
    replay.add(transitions([3]))
    assert np.mean(replay.draw(1000, rng)[1].reward == 3) > 0.2, "what is new is drawn soon"


def test_returns_are_of_whole_episodes():
    returns = Returns(2)
    returns.add(np.array([1.0, 2.0]), np.array([False, True]))
    returns.add(np.array([4.0, 8.0]), np.array([True, False]))
    returns.mark()
    assert returns.curve == [(4, 3.5)]


# ---- many processes


def actor_processes():
    listed = subprocess.run(["pgrep", "-P", str(os.getpid()), "-f", "spawn_main"], capture_output=True, text=True)
    return listed.stdout.split()


def test_eight_actors_train_one_agent_on_one_coordinator(client):
    learning_package("torch")
    options = models.ActorOptions(["benchmark://mm-v0/mm32_32_32", "benchmark://mm-v0/mm32_48_32"], envs=2, batch=10)
    for steps in (900, 9_000, 90_000):  # on a busy host some actors start late
        done = models.train_distributed(options, steps, actors=8, address=client.address, seed=2)
        if min(done.steps) > 0 and done.steps_a_second > 0:
            break
    assert done.returns.steps == sum(done.steps) >= steps
    assert len(done.steps) == 8 and min(done.steps) > 0, "all of them sent something"
    assert done.steps_a_second > 0 and done.updates > 20 and done.published >= 2 and len(done.returns.curve) >= 2
    assert not multiprocessing.active_children() and not actor_processes()
    masks = np.ones((1, len(done.agent.actions)))
    assert done.agent.act(np.zeros((1, done.agent.features), np.float32), masks).shape == (1,)


def test_a_failed_actor_ends_the_training_with_what_it_said(client):
    learning_package("torch")
    wrong = models.ActorOptions(["benchmark://mm-v0/mm32_32_32", "benchmark://mm-v9/mm32_32_32"], envs=8)
    with pytest.raises(models.ActorFailed, match="mm-v9"):
        models.train_distributed(wrong, 10_000, actors=2, address=client.address)
    stuck = models.ActorOptions(["benchmark://mm-v0/mm8_8_8"], action_space=["split_16"])
    with pytest.raises(models.ActorFailed, match="no action is legal"):
        models.train_distributed(stuck, 10_000, actors=1, address=client.address)
    assert not multiprocessing.active_children() and not actor_processes()
    with pytest.raises(ModelError, match="need a list of benchmarks"):
        models.train_distributed(models.ActorOptions("benchmark://mm-v0/mm32_32_32"), 10)
    with pytest.raises(ModelError, match="at least 1, not 0"):
        models.train_distributed(wrong, 10, actors=0)
    with pytest.raises(ModelError, match="need a list of benchmarks"):
        models.train_distributed(models.ActorOptions([]), 10)
    with pytest.raises(ModelError, match="the agent sees 5 numbers"):
        models.train_distributed(wrong, 10, agent=models.DQN(5, ACTIONS))
