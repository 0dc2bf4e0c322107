"""CompilerGym on a program beside `bench/run.sh llvm --only batches --bitcode FILE`: random steps of its 124 actions with
InstCount and Autophase, in episodes of 40.

    compiler_gym_peer.py FILE.bc [SECONDS]

prints {"instructions", "steps", "processor", "wall"}: steps per second of processor time, of its service and of Python
together, and of wall time. By hand, as CompilerGym 0.2.5 (of 2022) is not made for today's Python. It was run so:
`pip install --no-deps compiler_gym` with gym 0.20 (built by setuptools < 60), protobuf < 4.21, pydantic < 2, networkx < 3, grpcio, deprecated,
docker, fasteners, humanize, requests, tabulate, absl-py and psutil; Debian's libtinfo5; and, as its archive of LLVM 10
must be there, COMPILER_GYM_SITE_DATA=FOLDER with LLVM 14's programs in FOLDER/llvm-v0/bin and an empty
FOLDER/llvm-v0/.unpacked. It reads bitcode of llvm-stress-14 and not that of clang-14.
"""

import json
import random
import sys
import time

import compiler_gym
import psutil
from compiler_gym.datasets import Benchmark

STEPS_OF_EPISODE = 40


def processor_seconds():
    own = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (own, *own.children(recursive=True)))


def main():
    program = Benchmark.from_file("benchmark://mine-v0/program", sys.argv[1])
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    env = compiler_gym.make("llvm-v0", benchmark=program)
    env.reset(benchmark=program)
    instructions = int(env.observation["IrInstructionCount"])
    chosen, steps = random.Random(1), 0
    begun, processor_begun = time.monotonic(), processor_seconds()
    while time.monotonic() - begun < seconds:
        env.reset(benchmark=program)
        for _ in range(STEPS_OF_EPISODE):
            _, _, is_over, _ = env.step(chosen.randrange(env.action_space.n), observation_spaces=["InstCount", "Autophase"])
            steps += 1
            if is_over:
                break
    print(json.dumps({"instructions": instructions, "steps": steps,
                      "processor": steps / (processor_seconds() - processor_begun),
                      "wall": steps / (time.monotonic() - begun)}))
    env.close()


if __name__ == "__main__":
    main()
