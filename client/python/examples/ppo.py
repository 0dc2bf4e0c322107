#!/usr/bin/env python3
"""PPO on LoopTune-v0, then a race with random search on matrix products that it has not seen. The agent is
loopfleet.models.PPO; experiment.py beside this has the rest.

    LOOPFLEET_BIN=build/release/bin python client/python/examples/ppo.py --out docs/examples/ppo
"""

import experiment

from loopfleet.models import PPO


def train(client, benchmarks, steps):
    envs = experiment.environments(client, benchmarks, num_envs=16)
    agent = PPO.for_envs(envs)
    returns = agent.train(envs, steps, on_mark=experiment.say)
    envs.close()
    return agent, returns


def main():
    experiment.run("PPO", train, __doc__)


if __name__ == "__main__":
    main()
