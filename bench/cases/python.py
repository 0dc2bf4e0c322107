#!/usr/bin/env python3
"""What the Python package costs besides the measurements: messages, environments over a backend that answers at
once, and the gain of not waiting for the slowest job. Prints the lines of bench/run.sh."""

import argparse
import functools
import heapq
import json
import os
import threading
import time
from concurrent.futures import Future

import gymnasium as gym
import numpy as np

import loopfleet
from loopfleet import _core
from loopfleet.envs import LoopTuneEnv, WalkVectorEnv
import result_line

MM = "benchmark://mm64_256_16_range-v0/mm64_64_64"
WALK = ["down", "down", "split_16", "up", "split_4", "swap_up", "down", "down", "unroll", "up", "up", "split_2",
        "down", "down", "vectorize", "up", "swap_down", "down", "up", "down"]  # 20 actions, as in bench/cases/queue.cc

emit = functools.partial(result_line.emit, "python")


def median_ms(work, times=51):
    took = []
    for _ in range(times):
        since = time.perf_counter()
        work()
        took.append(time.perf_counter() - since)
    return float(np.median(took)) * 1e3


class Null:
    """Answers every job at once with one measured outcome."""

    def __init__(self, outcome):
        self.outcome = outcome

    def submit_jobs(self, jobs):
        futures = []
        for _ in jobs:
            future = Future()
            future.set_result(self.outcome)
            futures.append(future)
        return futures

    def submit_job(self, job):
        return self.submit_jobs([job])[0]


class Uneven:
    """Eight workers with random job times: most are short, some are long."""

    def __init__(self, outcome, mean_s=0.004, workers=8):
        self.outcome = outcome
        self.rng = np.random.default_rng(1)
        self.mean_s = mean_s
        self.free_at = [0.0] * workers
        self.heap = []
        self.number = 0
        self.condition = threading.Condition()
        threading.Thread(target=self._serve, daemon=True).start()

    def submit_jobs(self, jobs):
        return [self.submit_job(job) for job in jobs]

    def submit_job(self, job):
        future = Future()
        with self.condition:
            start = max(time.monotonic(), heapq.heappop(self.free_at))
            done = start + float(self.rng.pareto(1.5)) * self.mean_s / 2
            heapq.heappush(self.free_at, done)
            heapq.heappush(self.heap, (done, self.number, future))
            self.number += 1
            self.condition.notify()
        return future

    def _serve(self):
        while True:
            with self.condition:
                while not self.heap or self.heap[0][0] > time.monotonic():
                    self.condition.wait(None if not self.heap else max(0.0, self.heap[0][0] - time.monotonic()))
                future = heapq.heappop(self.heap)[2]
            future.set_result(self.outcome)


def bench_messages(outcome):
    jobs = [loopfleet.job(MM, WALK) for _ in range(1000)]
    request = os.urandom(16)
    samples = min(15, len(outcome.samples_ns))  # as in bench/cases/queue.cc
    rows = 1000  # in one frame of at most 1 MiB, as the coordinator splits pages
    while len(page := _core.encode_page(1, 1, [outcome] * rows, samples)) > 1 << 20:
        rows //= 2
    encode = median_ms(lambda: _core.encode_submit(1, request, 0, jobs))

    def decode_all():
        return loopfleet.ResultBatch([row for _ in range(1000 // rows) for row in _core.decode_reply(page)[2][1]]).columns

    assert len(decode_all()["gflops"]) == 1000
    decode = median_ms(decode_all)
    lines = [{"benchmark": MM, "actions": WALK} for _ in range(1000)]
    text = json.dumps([outcome.to_dict() for _ in range(1000)])
    emit("encode 1,000 jobs of 20 actions", encode, "ms", "json.dumps", median_ms(lambda: json.dumps(lines), 11))
    emit(f"decode 1,000 outcomes of {samples} samples to columns", decode, "ms", "json.loads",
         median_ms(lambda: json.loads(text), 11))
    emit("encode 1,000 jobs and decode 1,000 outcomes", encode + decode, "ms", "goal", 1.0)
    emit("make 1,000 jobs from names", median_ms(lambda: [loopfleet.job(MM, WALK) for _ in range(1000)], 11), "ms")


def legal_steps_per_second(envs, seconds):
    rng = np.random.default_rng(0)
    envs.reset(seed=0)
    steps, since = 0, time.perf_counter()
    while time.perf_counter() - since < seconds:
        noise = rng.random(envs.action_masks().shape)
        envs.step(np.argmax(noise * envs.action_masks(), axis=1))
        steps += envs.num_envs
    return steps / (time.perf_counter() - since)


def bench_vector(outcome, seconds):
    client = Null(outcome)
    ours = WalkVectorEnv(64, env_class=LoopTuneEnv, client=client)
    rate = legal_steps_per_second(ours, seconds)
    single = [LoopTuneEnv(client=client) for _ in range(64)]
    sync = gym.vector.SyncVectorEnv([lambda env=env: env for env in single])
    sync.reset(seed=0)
    steps, since = 0, time.perf_counter()
    rng = np.random.default_rng(0)
    while time.perf_counter() - since < seconds / 2:
        masks = np.stack([env.action_masks() for env in single])
        sync.step(np.argmax(rng.random(masks.shape) * masks, axis=1))
        steps += 64
    emit("64 environments over a null backend, 17 actions, 1,160 features, masks", rate, "steps/s",
         "gymnasium.vector.SyncVectorEnv of the single ones", steps / (time.perf_counter() - since))


def bench_async(outcome, seconds):
    rates = {}
    for batch in (64, 16):
        envs = WalkVectorEnv(64, env_class=LoopTuneEnv, client=Uneven(outcome), batch_size=batch, episode_steps=6)
        action = envs.single_action_space["split_2"]  # every step is measured
        envs.async_reset(seed=0)
        steps, since = 0, time.perf_counter()
        while time.perf_counter() - since < seconds:
            *_, info = envs.recv()
            envs.send(np.full(batch, action), info["env_id"])
            steps += batch
        rates[batch] = steps / (time.perf_counter() - since)
    emit("async: 64 environments, 8 uneven workers, recv of 16", rates[16], "steps/s", "sync: recv of all 64",
         rates[64])


def bench_fork(outcome):
    env = LoopTuneEnv(client=Null(outcome))
    env.reset()
    env.multistep(WALK[:9])
    def forks():
        for _ in range(1000):
            env.fork()
    emit("env.fork() after 9 actions", median_ms(forks, 11), "us", "goal", 20.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each rate")
    given = parser.parse_args()
    with loopfleet.LocalCluster(workers=1, leave_timing_cores=False) as cluster, cluster.client() as client:
        outcome = client.evaluate(MM, WALK, on_illegal="skip")
        for _ in range(20):
            if outcome.ok:
                break
            outcome = client.evaluate(MM, WALK, on_illegal="skip", fresh=True)
    if not outcome.ok:
        raise SystemExit(f"bench python: no figure to work with: {outcome}")
    bench_messages(outcome)
    bench_vector(outcome, given.seconds)
    bench_async(outcome, given.seconds)
    bench_fork(outcome)


if __name__ == "__main__":
    main()
