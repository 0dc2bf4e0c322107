"""Training with many environments while an interpreter, a worker and a coordinator are killed: it continues or
fails with a typed error within its limit, and no process is left."""

import os
import signal
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from processes import alive, wait_for_the_end_of, wait_until

import loopfleet

SIZES = [f"benchmark://mm-v0/mm16_16_{k}" for k in range(8, 40)]


def vector(client):
    envs = gym.make_vec("loopfleet/LoopTune-v0", num_envs=8, batch_size=4, client=client, benchmarks=SIZES,
                        episode_steps=4, autoreset_mode="SameStep")
    split = envs.single_action_space["split_2"]
    return envs, split


def training(envs, split, way):
    """Steps endlessly by step(), or by send() and recv(); yields the rewards of each step, and whether each is of a
    figure."""
    def told(rewards, info):
        errors = info.get("error_type", [None] * len(rewards))
        return rewards, [error is None and reward != 0 for error, reward in zip(errors, rewards)]

    if way == "step":
        envs.reset(seed=1)
        while True:
            _, rewards, _, _, info = envs.step(np.full(envs.num_envs, split))
            yield told(rewards, info)
    envs.async_reset(seed=1)
    while True:
        _, rewards, _, _, info = envs.recv()
        yield told(rewards, info)
        envs.send(np.full(len(rewards), split), info["env_id"])


def several(steps, count=6):
    has_figures = False
    for number in range(1, 101):  # a busy host may give no figure for some steps
        rewards, of_figures = next(steps)
        assert np.isfinite(rewards).all()
        has_figures |= any(of_figures)
        if number >= count and has_figures:
            return
    pytest.fail("no step has a figure")


@pytest.mark.parametrize("way", ["step", "send and recv"])
def test_a_worker_and_then_the_coordinator(way):
    with loopfleet.LocalCluster(workers=2) as cluster, cluster.client(silence_limit=8.0) as client:
        workers = [worker["pid"] for worker in client.workers()]
        pids = [cluster.pid, cluster.coordinator_pid, *workers]
        steps = training(*vector(client), way)
        several(steps)
        os.kill(workers[0], signal.SIGKILL)
        several(steps)
        os.kill(cluster.coordinator_pid, signal.SIGKILL)
        with pytest.raises(loopfleet.CoordinatorUnavailable, match="no answer from the coordinator"):
            while True:
                next(steps)
    assert not any(alive(pid) for pid in pids)


@pytest.mark.parametrize("way", ["step", "send and recv"])
def test_a_coordinator_that_comes_back(way, daemon, sockets, tmp_path):
    clients, workers = f"ipc://{sockets}/clients", f"ipc://{sockets}/workers"
    coordinator = ("loopfleet-coordinator", "--listen-clients", clients, "--listen-workers", workers, "--http",
                   "127.0.0.1:0", "--db", str(tmp_path / "x.db"))
    process, _ = daemon(*coordinator)
    daemon("loopfleet-worker", "--coordinator", workers, "--http", "127.0.0.1:0")
    with loopfleet.Client(clients) as client:
        wait_until(lambda: [worker["state"] for worker in client.workers()] == ["ready"], "the worker is ready")
        envs, split = vector(client)
        steps = training(envs, split, way)
        several(steps)
        process.kill()
        process.wait()
        daemon(*coordinator)
        several(steps)


SCRIPT = """
import numpy as np, gymnasium as gym, loopfleet
cluster = loopfleet.LocalCluster(workers=1).start()
print(cluster.pid, cluster.coordinator_pid, *[w["pid"] for w in cluster.client().workers()], flush=True)
envs = gym.make_vec("loopfleet/LoopTune-v0", num_envs=8, batch_size=4)
split = envs.single_action_space["split_2"]
envs.async_reset(seed=1)
while True:
    _, rewards, _, _, info = envs.recv()
    print(rewards.shape, flush=True)
    envs.send(np.full(4, split), info["env_id"])
"""


def test_an_interpreter():
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 3 and all(alive(pid) for pid in pids)
    for _ in range(6):
        assert process.stdout.readline() == "(4,)\n", "it trains"
    process.kill()
    process.wait(60)
    process.stdout.close()
    wait_for_the_end_of(pids)
