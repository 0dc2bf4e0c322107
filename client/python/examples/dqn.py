#!/usr/bin/env python3
"""A double DQN (temporal differences, replay, masks) on LoopTune-v0, then a race with random search on matrix products
that it has not seen. The agent is loopfleet.models.DQN.

    LOOPFLEET_BIN=build/release/bin python client/python/examples/dqn.py --out docs/examples/dqn
"""

import experiment

from loopfleet.models import DQN


def train(client, benchmarks, steps):
    envs = experiment.environments(client, benchmarks, num_envs=16)
    agent = DQN.for_envs(envs)
    returns = agent.train(envs, steps, on_mark=experiment.say)
    envs.close()
    return agent, returns


def main():
    experiment.run("DQN", train, __doc__)


if __name__ == "__main__":
    main()
