#!/usr/bin/env python3
"""Adapters with the real packages, which are too large for every run of the tests: Stable-Baselines3's PPO trains
on a real cluster, on single environments and on ours many at once.

    python3 -m venv env && env/bin/pip install '.[sb3]'
    LOOPFLEET_BIN=build/release/bin env/bin/python tests/python/adapters_check.py
"""

import gymnasium as gym
import stable_baselines3
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env

import loopfleet
from loopfleet.envs import LoopToolEnv, LoopTuneEnv
from loopfleet.sb3 import Sb3VecEnv

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


if __name__ == "__main__":
    main()
