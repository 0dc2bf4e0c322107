#!/usr/bin/env python3
"""A DQN trained by many processes on one cluster, in the manner of Ape-X: actors walk LoopTune-v0 and send batches of
transitions, a learner draws them by priority. First how many steps a second 1, 2, 4 and 8 actors walk against one
coordinator with one worker, then a training by the most of them, and the race of dqn.py.

    LOOPFLEET_BIN=build/release/bin python client/python/examples/distributed_dqn.py --out docs/examples/distributed_dqn
"""

import math
import tempfile
from pathlib import Path

import experiment
from race import matmuls

import loopfleet
from loopfleet.models import ActorOptions, train_distributed
from loopfleet.rows import rows_of_file


def rate_of(actors, benchmarks, steps):
    """On a cluster of its own, so that no figure is known before."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "results.db"
        with loopfleet.LocalCluster(workers=1, database=database) as cluster:
            done = train_distributed(ActorOptions(benchmarks), steps, actors=actors, address=cluster.address)
        evaluations = len({row["tree_key"] for row in rows_of_file(database)})
    walked = sum(done.steps)
    if math.isnan(done.steps_a_second):
        raise SystemExit(f"--rate-steps {steps} are over before the last of {actors} actors walks: give more")
    facts = {"actors": actors, "steps": walked, "evaluations": evaluations, "steps_a_second": done.steps_a_second,
             "evaluations_a_second": done.steps_a_second * evaluations / walked, "updates": done.updates}
    print(f"{actors} actors: {facts['steps_a_second']:.0f} steps a second, of {walked:,}; {evaluations:,} new trees",
          flush=True)
    return facts


def main():
    parser = experiment.parser("distributed DQN", __doc__)
    parser.set_defaults(steps=32_000)
    parser.add_argument("--actors", default="1,2,4,8", help="numbers of processes that walk; the last one trains")
    parser.add_argument("--rate-steps", type=int, default=4_000, help="of each number of actors")
    given = parser.parse_args()
    counts = [int(count) for count in given.actors.split(",")]
    rates = [rate_of(count, matmuls(24, 0)[0], given.rate_steps) for count in counts]

    def train(client, benchmarks, steps):
        done = train_distributed(ActorOptions(benchmarks), steps, actors=counts[-1], address=client.address,
                                 on_mark=experiment.say)
        print(f"{sum(done.steps):,} steps of {len(done.steps)} actors (from {min(done.steps):,} to {max(done.steps):,}), "
              f"{done.updates:,} updates, {done.published:,} networks in {done.seconds:.0f} s", flush=True)
        return done.agent, done.returns

    experiment.run_given("distributed DQN", train, given, {"by_actors": rates})


if __name__ == "__main__":
    main()
