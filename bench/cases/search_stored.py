#!/usr/bin/env python3
"""A search on a live cluster, repeated from its database alone: is the same schedule chosen? Prints the lines of
bench/run.sh: the time of the repeated search's choice beside that of the live one's, both as the database has them. The
live search measures its best three again before it chooses, the repeated one cannot."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

BENCHMARKS = [f"benchmark://{name}" for name in (
    "mm-v0/mm112_208_256 mm-v0/mm128_160_224 mm-v0/mm192_192_80 mm-v0/mm224_64_240 mm-v0/mm64_240_64 "
    "mm-v0/mm96_160_256 conv-v0/conv1_32_30_30__32_32_3_3 program-v0/mmbias112_96_160 program-v0/reduce_max128_2000 "
    "program-v0/shift200_500").split()]
PROGRAM = str(Path(os.environ["LOOPFLEET_BIN"]) / "loopfleet")


def searched(before, after, given):
    command = [*before, PROGRAM, "search", *BENCHMARKS, "--evaluations", str(given.evaluations), "--seed", str(given.seed),
               "--strategy", given.strategy, "--json", *after]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=300, help="of each program")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="loopfleet-stored-") as scratch:
        database = str(Path(scratch) / "search.db")
        live = searched([PROGRAM, "local", "--db", database, "--"], [], given)
        again = searched([], ["--store-only", "--db", database], given)
    for one, other in zip(live, again, strict=True):
        chosen, repeated = one["best"]["elapsed_ns"], other["best"]["elapsed_ns"]
        print(json.dumps({"bench": "search_stored", "case": one["benchmark"].rsplit("/")[-1], "value": repeated, "unit": "ns",
                          "peer": "live", "peer_value": chosen, "ratio": repeated / chosen,
                          "same_schedule": one["best"]["actions"] == other["best"]["actions"],
                          "live_confirmed_ns": one["best"]["confirmed_ns"], "evaluations": one["evaluations"],
                          "live_s": one["seconds"], "stored_s": other["seconds"]}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
