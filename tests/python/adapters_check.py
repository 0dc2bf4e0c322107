#!/usr/bin/env python3
"""Adapters with the real packages, which are too large for every run of the tests: Stable-Baselines3's PPO trains
on a real cluster, on single environments and on ours many at once; torch loads an exported data set.

    python3 -m venv env && env/bin/pip install '.[sb3,torch,dataset]'
    LOOPFLEET_BIN=build/release/bin env/bin/python tests/python/adapters_check.py
"""

import tempfile
from pathlib import Path

import gymnasium as gym
import stable_baselines3
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env

import loopfleet
from loopfleet.envs import LoopToolEnv, LoopTuneEnv
from loopfleet.export import export
from loopfleet.rows import row_of
from loopfleet.sb3 import Sb3VecEnv
from loopfleet.torch_data import ScheduleDataset

MM = "benchmark://mm-v0/mm32_32_32"


def main():
    print(f"gymnasium {gym.__version__}, stable-baselines3 {stable_baselines3.__version__}")
    with loopfleet.LocalCluster(workers=1):
        for env_class in (LoopToolEnv, LoopTuneEnv):
            check_env(env_class(reward_space=None))
            print(f"{env_class.__name__}: Stable-Baselines3's check_env passes")
        envs = Sb3VecEnv(8, env_class=LoopTuneEnv, benchmark=MM, action_space="looptune", reward_space="log_speedup")
        model = PPO("MlpPolicy", envs, n_steps=32, batch_size=64, n_epochs=2, seed=1, device="cpu")
        model.learn(512)
        print(f"PPO on Sb3VecEnv of 8: {model.num_timesteps} steps, "
              f"{len(envs.env_method('action_masks'))} masks of {envs.action_space.n} actions")
        single = gym.make("loopfleet/LoopTune-v0", benchmark=MM, action_space="looptune")
        model = PPO("MlpPolicy", single, n_steps=32, batch_size=32, n_epochs=2, seed=1, device="cpu")
        model.learn(64)
        print(f"PPO on gym.make: {model.num_timesteps} steps")
        check_data_set()


def check_data_set():
    jobs = [(f"benchmark://mm-v0/mm{m}_16_16", ["down"] * down + ["split_4"]) for m in range(8, 40) for down in range(3)]
    with loopfleet.Client() as client, tempfile.TemporaryDirectory() as folder:
        export([row_of(outcome) for outcome in client.evaluate_many(jobs)], Path(folder) / "data")
        sets = {part: ScheduleDataset(Path(folder) / "data", part) for part in ("train", "validation", "test")}
        loader = torch.utils.data.DataLoader(sets["train"], batch_size=16)
        batch = next(iter(loader))
        assert batch["loops"].shape == (16, 20, 58) and batch["mask"].sum() > 16 * 3
        assert (batch["loops"][~batch["mask"]] == 0).all() and (batch["gflops"] > 0).all()
        print("ScheduleDataset:", ", ".join(f"{part} {len(data)}" for part, data in sets.items()))


if __name__ == "__main__":
    main()
