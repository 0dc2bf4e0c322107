#!/usr/bin/env python3
"""A DQN trained by many processes on one cluster, in the manner of Ape-X: actors walk LoopTune-v0 and send batches of
transitions, a learner draws them by priority. Then the race of dqn.py.

    LOOPFLEET_BIN=build/release/bin python client/python/examples/distributed_dqn.py --actors 8 --out docs/examples/distributed_dqn
"""

import experiment

from loopfleet.models import ActorOptions, train_distributed


def main():
    parser = experiment.parser("distributed DQN", __doc__)
    parser.add_argument("--actors", type=int, default=8, help="processes that walk")
    given = parser.parse_args()

    def train(client, benchmarks, steps):
        done = train_distributed(ActorOptions(benchmarks), steps, actors=given.actors, address=client.address,
                                 on_mark=experiment.say)
        print(f"{sum(done.steps):,} steps of {len(done.steps)} actors (from {min(done.steps):,} to {max(done.steps):,}), "
              f"{done.updates:,} updates, {done.published:,} networks in {done.seconds:.0f} s", flush=True)
        return done.agent, done.returns

    experiment.run_given("distributed DQN", train, given)


if __name__ == "__main__":
    main()
