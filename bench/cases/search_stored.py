#!/usr/bin/env python3
"""A search on a live cluster, repeated from its database alone: is its choice as good? Prints the lines of bench/run.sh: the
confirmed time of the repeated search's choice beside that of the live one's, and the ratio of their first figures, of
which the repeated search took the smallest. The live search measured its best three again, the repeated one cannot: if its
choice is none of them, or a neighbour disturbed these figures, both are measured again, in turns, on a new cluster."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BENCHMARKS = [f"benchmark://{name}" for name in (
    "mm-v0/mm112_208_256 mm-v0/mm128_160_224 mm-v0/mm192_192_80 mm-v0/mm224_64_240 mm-v0/mm64_240_64 "
    "mm-v0/mm96_160_256 conv-v0/conv1_32_30_30__32_32_3_3 program-v0/mmbias112_96_160 program-v0/reduce_max128_2000 "
    "program-v0/shift200_500").split()]
REPEATS = 5  # figures of grade A or B of each of two choices that are measured again
BATCHES = 10  # at most, until there are so many


def program():
    return str(Path(os.environ["LOOPFLEET_BIN"]) / "loopfleet")


def lines_of(command, text=None):
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True)
    if done.returncode > 1:  # 1: a job failed, such as one whose figure is too poor
        raise SystemExit(f"search_stored: '{' '.join(command)}' ended with {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def searched(before, after, given):
    return lines_of([*before, program(), "search", *BENCHMARKS, "--evaluations", str(given.evaluations), "--seed",
                     str(given.seed), "--strategy", given.strategy, "--json", *after])


def confirmed_of(live, repeated):
    """(ns of the live choice, ns of the repeated one), both measured after the search; None: they were not, or disturbed."""
    confirmed = {tuple(each["actions"]): each["confirmed_ns"] for each in live["confirmed"] if not each["disturbed"]}
    chosen, again = (confirmed.get(tuple(one["best"]["actions"])) for one in (live, repeated))
    return (chosen, again) if chosen and again else None


def measured_again(live, repeated):
    """As confirmed_of(), on a cluster of its own, where nothing is known."""
    jobs = [{"benchmark": live["benchmark"], "actions": one["best"]["actions"], "fresh": True, "min_grade": "B"}
            for one in (live, repeated)]
    figures = [], []
    for _ in range(BATCHES):
        outcomes = lines_of([program(), "local", "--", program(), "submit", "-", "--wait", "--jsonl"],
                            "".join(json.dumps(job) + "\n" for job in jobs * REPEATS))
        for one in outcomes:
            if one["elapsed_ns"]:
                figures[one["index"] % 2].append(one["elapsed_ns"])
        if min(map(len, figures)) >= REPEATS:
            return tuple(map(statistics.median, figures))
    raise SystemExit(f"search_stored: {live['benchmark']} has no {REPEATS} figures of grade A or B: the host is too busy")


def line_of(live, repeated):
    confirmed = confirmed_of(live, repeated)
    chosen, again = confirmed or measured_again(live, repeated)
    return {"bench": "search_stored", "case": live["benchmark"].rsplit("/")[-1], "value": again, "unit": "ns",
            "peer": "live", "peer_value": chosen, "ratio": again / chosen,
            "first_ratio": repeated["best"]["elapsed_ns"] / live["best"]["elapsed_ns"],
            "same_schedule": live["best"]["actions"] == repeated["best"]["actions"],
            "measured": "at the live search's end" if confirmed else "again, in turns",
            "evaluations": live["evaluations"], "live_s": live["seconds"], "stored_s": repeated["seconds"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=300, help="of each program")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="loopfleet-stored-") as scratch:
        database = str(Path(scratch) / "search.db")
        live = searched([program(), "local", "--db", database, "--"], [], given)
        again = searched([], ["--store-only", "--db", database], given)
    for one, other in zip(live, again, strict=True):
        print(json.dumps(line_of(one, other)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
