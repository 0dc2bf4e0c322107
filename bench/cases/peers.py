#!/usr/bin/env python3
"""Search beside the searches of other compilers, at equal seconds on one core: TVM's MetaSchedule, Halide's
autoschedulers, and numpy where it has the operation. On eight of LoopTune's test products, a convolution, a product with
a bias, a chain and sums of rows; ways take turns by program, so all meet the same hour.

All that a way runs (search, compiler, kernels) shares the --cores. Its seconds count from the moment at which it is
loaded and ready. Then its best schedule is measured again: loopfleet's three times, the median; a peer's in three new
processes, the quickest of their medians. A peer's output must be what numpy computes.

Prints the lines of bench/run.sh: loopfleet's `auto` beside each other way, for each program and then as geometric means.
With --out FILE.jsonl every run is kept, and the same command goes on where it was.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

import numpy as np

import loopfleet
from loopfleet import _core

from search import Runs
from search_programs import TEST_OTHERS, TEST_PRODUCTS
from search_ways import Models, by_model, by_strategy, say

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/peers"))
from numpy_programs import program_of  # noqa: E402

PROGRAMS = ("mm64_240_64 mm112_256_64 mm208_160_80 mm176_128_160 mm128_160_224 mm208_128_256 mm224_208_224 mm224_224_256 "
            "conv1_32_30_30__32_32_3_3 mmbias112_96_160 chain200_300 reduce_add300_700").split()
AUTO = "loopfleet, auto"
TVM_PYTHON = ROOT / "build/peers/bin/python"
HALIDE = Path(os.environ.get("LOOPFLEET_BIN", ROOT / "build/release/bin")) / "bench_halide_autoscheduler"
TIMINGS, TIMING_S = 3, 0.5
ONE_SCHEDULE_S = 60  # the most that a way may take that has no use for more seconds
STARTING_S = 120     # the most that a peer may take besides its seconds
TOLERANCE = 1e-4

# function: (benchmark, seconds) -> facts; seconds None: it has no use for more or fewer. missing: why it cannot run here
Way = namedtuple("Way", "function takes_seconds missing", defaults=(None,))


class PeerFailed(Exception):
    """A peer has no figure for a program; the message says why."""


def ways_of(given, models):
    tvm_missing = None if TVM_PYTHON.exists() else "bench/make_environment.sh has not made build/peers"
    halide_missing = None if HALIDE.exists() else f"no {HALIDE.name}: Halide (libhalide14-0-dev) was not there at the build"
    tvm = [str(TVM_PYTHON), str(ROOT / "bench/peers/tvm_programs.py")]
    ways = {
        AUTO: Way(searched(by_strategy("auto", 1)), True),
        "loopfleet, fitted models": Way(searched(by_model(models, True, 1)) if models else None, True,
                                        None if models else "neither --data nor --models"),
        "TVM MetaSchedule": Way(tuned(tvm), True, tvm_missing),
        "Halide Adams2019, samples": Way(tuned([str(HALIDE)], ["Adams2019", "1000000"]), True, halide_missing),
        "Halide Adams2019, its choice": Way(tuned([str(HALIDE)], ["Adams2019", "1"]), False, halide_missing),
        "Halide Mullapudi2016": Way(tuned([str(HALIDE)], ["Mullapudi2016", "1"]), False, halide_missing),
        "numpy": Way(by_numpy, False)}
    return {name: way for name, way in ways.items()
            if name == AUTO or not given.only or any(word in name for word in given.only)}


def searched(search):
    def run(benchmark, seconds):
        with loopfleet.LocalCluster(workers=1) as cluster, cluster.client() as client:
            facts = search(client, benchmark, seconds, 1)
        if not facts["elapsed_ns"]:
            raise PeerFailed("the search has no confirmed figure")
        return {"elapsed_ns": facts["elapsed_ns"], "took_s": facts["took_s"], "measured": facts["evaluations"],
                "what": f"loopfleet {loopfleet.__version__}", "actions": facts["actions"]}
    return run


def tuned(command, options=()):
    """By a program that understands `tune PROGRAM FOLDER SECONDS` and `time PROGRAM FOLDER SECONDS`."""
    def run(benchmark, seconds):
        limit_s = seconds or ONE_SCHEDULE_S
        with tempfile.TemporaryDirectory(prefix="loopfleet-peers-") as name:
            folder = Path(name)
            _, inputs, function = program_of(np, benchmark)
            for number, each in enumerate(inputs):
                each.tofile(folder / f"in{number}.f32")
            told = asked([*command, "tune", benchmark, name, str(limit_s), *options], limit_s)
            if not told["measured"]:
                raise PeerFailed(f"no schedule was measured within {limit_s:g} s")
            timings = []
            for _ in range(TIMINGS):
                timings.append(asked([*command, "time", benchmark, name, str(TIMING_S)], TIMING_S)["elapsed_ns"])
                check_output(np.fromfile(folder / "out.f32", np.float32), function(*inputs))
        return {"elapsed_ns": min(timings), "took_s": told["seconds"], "measured": told["measured"],
                "failed": told["failed"], "what": told["what"]}
    return run


def asked(command, seconds):
    """The JSON line that a peer prints at its end."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=seconds + STARTING_S)
    except subprocess.TimeoutExpired as error:
        raise PeerFailed(f"it did not end within {error.timeout:g} s") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        raise PeerFailed(lines[-1])
    return json.loads(done.stdout.splitlines()[-1])


def check_output(got, expected):
    if got.size != expected.size or not np.allclose(got.reshape(expected.shape), expected, TOLERANCE, TOLERANCE):
        raise PeerFailed("its output is not what numpy computes")


def by_numpy(benchmark, seconds):
    script = ROOT / "bench/peers/numpy_programs.py"
    told = [asked([sys.executable, str(script), "--seconds", str(TIMING_S), benchmark], TIMING_S) for _ in range(TIMINGS)]
    if told[0]["elapsed_ns"] is None:
        raise PeerFailed("it has no such operation")
    return {"elapsed_ns": min(each["elapsed_ns"] for each in told), "took_s": 0, "measured": 0, "what": told[0]["peer"]}


# ---- running


def measure(given, ways, runs):
    for name, way in ways.items():
        if way.missing:
            say(f"WITHOUT {name}: {way.missing}")
            print(json.dumps({"bench": "peers", "case": "skipped", "value": None, "unit": "GFLOP/s", "peer": name,
                              "peer_value": None, "ratio": None, "why": way.missing}), flush=True)
    here = {name: way for name, way in ways.items() if not way.missing}
    for benchmark in given.benchmarks:
        flop_count = loopfleet.Walk(benchmark).flop_count
        for seconds in given.seconds:
            for name, way in here.items():
                budget = seconds if way.takes_seconds else None
                key = key_of(benchmark, name, budget, given.cores)
                if key not in runs.found or "why" in runs.found[key]:
                    say(f"{benchmark}: {name}" + (f", {budget:g} s" if budget else ""))
                    try:
                        facts = way.function(benchmark, budget)
                    except PeerFailed as error:
                        facts = {"elapsed_ns": None, "took_s": None, "measured": 0, "what": name, "why": str(error)}
                    runs.add({"key": key, "benchmark": benchmark, "way": name, "seconds": budget, "cores": given.cores,
                              "flop_count": flop_count, **facts})
            for line in lines_of(runs, here, benchmark, seconds, given.cores):
                print(json.dumps(line), flush=True)
    return here


def key_of(benchmark, way, seconds, cores):
    return "|".join(map(str, (benchmark, way, seconds, cores)))


def rate_of(run):
    return run["flop_count"] / run["elapsed_ns"] if run["elapsed_ns"] else None


def lines_of(runs, ways, benchmark, seconds, cores):
    def run_of(name):
        return runs.found[key_of(benchmark, name, seconds if ways[name].takes_seconds else None, cores)]

    auto = run_of(AUTO)
    for name in ways:
        if name == AUTO:
            continue
        other = run_of(name)
        rate, peer_rate = rate_of(auto), rate_of(other)
        why = {"why": other["why"]} if "why" in other else {"why": auto["why"]} if "why" in auto else {}
        yield {"bench": "peers", "case": f"{benchmark.rsplit('/')[-1]}, {seconds:g} s", "value": rate, "unit": "GFLOP/s",
               "peer": name, "peer_value": peer_rate, "ratio": rate / peer_rate if rate and peer_rate else None,
               "what": other["what"], "seconds": auto["took_s"], "peer_seconds": other["took_s"],
               "candidates": auto["measured"], "peer_candidates": other["measured"], **why}


def summary(given, ways, runs):
    """Geometric means over the programs for which both have a figure, for each way and number of seconds."""
    for seconds in given.seconds:
        lines = [line for benchmark in given.benchmarks for line in lines_of(runs, ways, benchmark, seconds, given.cores)]
        for name in ways:
            both = [line for line in lines if line["peer"] == name and line["ratio"]]
            if not both:
                continue
            rate, peer_rate, ratio = (float(np.exp(np.mean([np.log(line[each]) for line in both])))
                                      for each in ("value", "peer_value", "ratio"))
            yield {"bench": "peers", "case": f"summary, {seconds:g} s", "value": rate, "unit": "GFLOP/s", "peer": name,
                   "peer_value": peer_rate, "ratio": ratio, "programs": len(both),
                   "ahead": f"{sum(line['ratio'] > 1 for line in both)} of {len(both)}",
                   **{each: float(np.median([line[each] for line in both]))
                      for each in ("seconds", "peer_seconds", "candidates", "peer_candidates")}}


def models_of(given):
    """None: neither data nor a folder of fitted models was given."""
    if given.models is None and given.data is None:
        return None
    folder = given.models or given.out.with_suffix(".models")
    if given.data is None and not (folder / "cost.npz").exists():
        raise SystemExit(f"peers: {folder} has no cost.npz; `bench/run.sh search --out FILE.jsonl` makes such a folder")
    given.table, given.suspect = 1, False
    return Models.open(given, folder)


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", help="so many of the dozen, or names of any that `search` judges by")
    parser.add_argument("--seconds", default="10,60", help="of each search")
    parser.add_argument("--cores", type=int, default=1, help="that all processes of a way share")
    parser.add_argument("--only", help="ways whose name has one of these words, such as TVM,numpy, beside loopfleet's")
    parser.add_argument("--data", help="fit models to this Parquet file or export, for a search of loopfleet that uses them")
    parser.add_argument("--models", type=Path, help="use the models in this folder, such as the one that `search` keeps")
    parser.add_argument("--out", type=Path, help="keeps every run")
    made = parser.parse_args(given)
    made.seconds = [float(each) for each in made.seconds.split(",") if each]
    made.only = made.only.split(",") if made.only else []
    if made.data and not (made.out or made.models):
        parser.error("--data needs --out or --models: fitted models are kept beside the one, or in the other")
    known = {each.rsplit("/")[-1]: each for each in TEST_PRODUCTS + TEST_OTHERS}
    names = PROGRAMS
    if made.programs:
        names = PROGRAMS[:int(made.programs)] if made.programs.isdigit() else made.programs.split(",")
    for name in names:
        if name not in known:
            parser.error(f"no program '{name}'{_core.nearest(name, list(known))}")
    made.benchmarks = [known[name] for name in names]
    allowed = sorted(os.sched_getaffinity(0))
    if not 1 <= made.cores <= len(allowed):
        parser.error(f"--cores must be from 1 to {len(allowed)}")
    made.processors = allowed[-made.cores:]
    return made


def main():
    given = arguments()
    models = models_of(given)
    os.sched_setaffinity(0, given.processors)  # what is started from here on inherits it
    runs = Runs(given.out)
    ways = measure(given, ways_of(given, models), runs)
    for line in summary(given, ways, runs):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
