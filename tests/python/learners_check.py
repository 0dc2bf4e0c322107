#!/usr/bin/env python3
"""The environments under RLlib and TorchRL, on a real cluster. Both are too large for every run of the tests.

TorchRL has its own check, check_env_specs. Current versions of RLlib check only multi-agent environments; single ones
are wrapped by its env runner, so the runner samples from one of each, and then RLlib's PPO trains.

    tests/python/learners_check.sh
"""

import argparse
import os
import platform

import gymnasium as gym

import loopfleet
from loopfleet.envs import LoopToolEnv, LoopTuneEnv

MM = "benchmark://mm-v0/mm32_32_32"


def check_rllib(address):
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

    import loopfleet.rllib
    print(f"ray {ray.__version__}")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    loopfleet.rllib.register()
    for name in ("loopfleet/LoopTool-v0", "loopfleet/LoopTune-v0", "loopfleet/LLVM-autophase-ic-v0"):
        runner = SingleAgentEnvRunner(config=PPOConfig().environment(name, env_config={"address": address}).env_runners(
            num_env_runners=0, num_envs_per_env_runner=2, rollout_fragment_length=20))
        episodes = runner.sample(num_timesteps=20, random_actions=True)
        print(f"{name}: RLlib's SingleAgentEnvRunner samples {sum(map(len, episodes))} steps")
        runner.stop()
    for name, options in (
            ("loopfleet/LoopTune-v0", {"benchmark": MM, "action_space": "looptune", "reward_space": "log_speedup"}),
            ("loopfleet/LLVM-autophase-ic-v0", {"benchmark": "benchmark://small-v0/qsort", "episode_steps": 20})):
        config = (PPOConfig().environment(name, env_config={"address": address, **options})
                  .env_runners(num_env_runners=0).training(train_batch_size=200, minibatch_size=50, num_epochs=2))
        algorithm = config.build_algo()
        result = algorithm.train()
        print(f"{name}: PPO of RLlib, {result['env_runners']['num_env_steps_sampled']} steps, "
              f"{result['env_runners']['num_episodes']} episodes")
        algorithm.stop()
    ray.shutdown()


def check_torchrl(address):
    import torchrl
    from torchrl.envs.utils import check_env_specs

    from loopfleet.torchrl import LoopfleetEnv
    print(f"torchrl {torchrl.__version__}")
    for env_class in (LoopToolEnv, LoopTuneEnv):
        env = LoopfleetEnv(env_class(address=address), device="cpu")
        check_env_specs(env)
        steps = env.rollout(8)
        print(f"{env_class.__name__}: TorchRL's check_env_specs passes; a rollout of {steps.shape[0]} steps")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("rllib", "torchrl"))
    given = parser.parse_args()
    print(f"Python {platform.python_version()}, gymnasium {gym.__version__}")
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    with loopfleet.LocalCluster(workers=1, leave_timing_cores=False) as cluster:
        if given.only != "torchrl":
            check_rllib(cluster.address)
        if given.only != "rllib":
            check_torchrl(cluster.address)


if __name__ == "__main__":
    main()
