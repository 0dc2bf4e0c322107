#!/usr/bin/env python3
"""What passes and hostile programs do to programs, workers and outcomes: csmith programs before and
after random passes, random passes over llvm-stress programs, and bitcode with random changes. Prints
the lines of bench/run.sh, and on standard error every program that a pass changes."""

import argparse
import collections
import functools
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import loopfleet
from loopfleet import _core, llvm_semantics
import result_line

FLAGS = [flag for flag, _ in _core.pass_actions("Passes19")]
CHECKABLE_FLAGS = [flag for flag in FLAGS if flag not in llvm_semantics.NEEDS_RUNTIME]
BATCH = 64

emit = functools.partial(result_line.emit, "llvm_semantics")


def draw(*key):
    return random.Random("/".join(map(str, key)))


def check_csmith(client, arguments):
    verdicts = collections.Counter()
    since = time.monotonic()
    for seed in range(arguments.first, arguments.first + arguments.csmith):
        passes = draw("csmith", seed).choices(CHECKABLE_FLAGS, k=arguments.passes)
        uri = f"generator://csmith-v0/{seed}"
        try:
            found = llvm_semantics.check_semantics(client, uri, passes)
            verdict, what = found.verdict, found.reason
        except RuntimeError as error:
            found, verdict, what = None, "a pass fails", str(error)
        verdicts[verdict] += 1
        if verdict != "equal":
            print(f"{uri}: {verdict}: {what[:300]}", file=sys.stderr)
        if found is not None and found.shortest:
            print(f"{uri}: shortest: {','.join(found.shortest)}", file=sys.stderr)
    emit("csmith", arguments.csmith, "programs", first=arguments.first, passes=arguments.passes,
         seconds=round(time.monotonic() - since), **verdicts)


def count_codes(client, jobs, codes, complain):
    for place, outcome in enumerate(client.evaluate_many(jobs, timeout=600).outcomes):
        code = "ok" if outcome.ok else outcome.status
        codes[code] += 1
        complain(jobs[place], code, outcome)


def alive(client):
    """The workers that still answer, by pid."""
    assert client.evaluate("benchmark://small-v0/qsort", passes=["mem2reg"], fresh=True, timeout=120).ok
    return sorted(worker["pid"] for worker in client.workers())


def run_stress(client, arguments):
    codes = collections.Counter()
    before, since = alive(client), time.monotonic()

    def complain(job, code, outcome):
        if code not in ("ok", "COMPILE_ERROR"):
            print(f"{job['benchmark']}: {code}: {outcome.message[:200]}", file=sys.stderr)

    seeds = range(arguments.first, arguments.first + arguments.stress)
    jobs = [{"benchmark": f"generator://llvm-stress-v0/{seed}",
             "passes": draw("stress", seed).choices(FLAGS, k=arguments.passes)} for seed in seeds]
    for at in range(0, len(jobs), BATCH):
        count_codes(client, jobs[at:at + BATCH], codes, complain)
    emit("llvm-stress", arguments.stress, "programs", first=arguments.first, passes=arguments.passes,
         seconds=round(time.monotonic() - since), same_workers=alive(client) == before, **codes)


def mutated(original, seed):
    """A few bytes changed, a part left out, doubled or moved, or the end cut off."""
    change, data = draw("mutation", seed), bytearray(original)
    for _ in range(change.choice((1, 1, 2, 4, 16))):
        at, size = change.randrange(len(data)), change.randint(1, 64)
        kind = change.randrange(6)
        if kind < 3:
            data[at] ^= 1 << change.randrange(8)
        elif kind == 3:
            data[at:at + size] = change.randbytes(size)
        elif kind == 4:
            del data[at:at + size]
        else:
            data[at:at] = data[at:at + size]
    if change.random() < 0.1:
        del data[change.randrange(4, len(data)):]
    return bytes(data)


def run_mutations(client, arguments, programs):
    codes = collections.Counter()
    original = llvm_semantics.bitcode_after(client, "generator://csmith-v0/5", [], 120)
    before, since = alive(client), time.monotonic()
    scratch = pathlib.Path(programs, "mutation.bc")
    jobs = []
    for seed in range(arguments.first, arguments.first + arguments.mutations):
        data = b"BC\xC0\xDE" + mutated(original, seed)[4:]
        scratch.write_bytes(data)
        added = subprocess.run([loopfleet.local_cluster.find_program(), "llvm", "add", scratch, "--llvm-programs", programs],
                               capture_output=True, text=True, check=True)
        jobs.append({"benchmark": added.stdout.strip(), "passes": ["-mem2reg", "-gvn"]})

    def complain(job, code, outcome):
        if code not in ("ok", "INVALID_BENCHMARK"):
            print(f"{job['benchmark']}: {code}: {outcome.message[:200]}", file=sys.stderr)

    for at in range(0, len(jobs), BATCH):
        count_codes(client, jobs[at:at + BATCH], codes, complain)
    emit("mutated bitcode", arguments.mutations, "programs", first=arguments.first,
         seconds=round(time.monotonic() - since), same_workers=alive(client) == before, **codes)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csmith", type=int, default=20, help="csmith programs to compare")
    parser.add_argument("--stress", type=int, default=100, help="llvm-stress programs to run passes on")
    parser.add_argument("--mutations", type=int, default=100, help="changes of one program's bitcode")
    parser.add_argument("--passes", type=int, default=40, help="random passes on each program")
    parser.add_argument("--first", type=int, default=0, help="the first seed, to run in parts")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lf-s-") as programs:
        with loopfleet.LocalCluster(llvm_programs=programs) as cluster, cluster.client() as client:
            if arguments.csmith:
                check_csmith(client, arguments)
            if arguments.stress:
                run_stress(client, arguments)
            if arguments.mutations:
                run_mutations(client, arguments, programs)


if __name__ == "__main__":
    main()
