#!/usr/bin/env python3
"""Search and learning on programs that no model was trained on. Table 1: the 25 products of LoopTune's test set;
table 2: convolutions, chains, reductions, mm512 and mm1024, beside numpy. Each strategy at each number of seconds; each
model and agent at its first schedule, without a measurement, and after 10 evaluations. Every run has a new cluster, so
nothing is answered from the store, and ends with three new measurements of what it found and of the untuned schedule, in
turns (a search: of its best three); what a neighbour disturbed is measured again, for 8 s at most.

Prints the lines of bench/run.sh, and at the end a summary for each way. With --out FILE.jsonl every run is kept, and
the same command goes on where it was; models, agents and the databases that they are trained on are kept beside it.
With --markdown FILE.md as well, nothing is measured: the table of docs/SEARCH.md is made of what was kept.
"""

import argparse
import json
import random
from pathlib import Path

import loopfleet
from loopfleet import _core

import result_line
from search_programs import TEST_OTHERS, TEST_PRODUCTS
from search_report import draw, markdown, peers, read_record, summary
from search_ways import STRATEGIES, is_asked_for, ways_of


class Runs:
    """Results by key; appended to a file, which is read at the start."""

    def __init__(self, path):
        self.found = {}
        self._path = path
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else ""
        whole = text[:text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole)  # a line that an interruption cut
        if whole:
            self.found, _ = read_record(path)

    def add(self, one):
        self.found[one["key"]] = one
        if self._path is not None:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(json.dumps(one) + "\n")


def measure(given, ways, runs):
    seconds = [(name, budget) for name, (_, budgets) in ways.items() for budget in budgets]
    for benchmark in given.benchmarks:
        for seed in range(1, given.seeds + 1):
            for name, budget in seconds:
                key = "|".join(map(str, (benchmark, name, budget, seed, given.threads)))
                if key not in runs.found or not runs.found[key]["peak_gflops"]:
                    facts = measured(ways[name][0], given, benchmark, budget, seed)
                    runs.add({"key": key, "benchmark": benchmark, "way": name, "seconds": budget, "seed": seed,
                              "threads": given.threads, **facts})
                emit(runs.found[key])


def measured(way, given, benchmark, budget, seed):
    """On a new cluster; on another one if its worker is in quarantine at the end, which tells no peak."""
    for _ in range(2):
        with loopfleet.LocalCluster(workers=given.workers) as cluster, cluster.client() as client:
            facts = way(client, benchmark, budget, seed)
            peak = client.peak_gflops() * given.threads
        if peak:
            break
    return {"peak_gflops": peak, **facts}


def emit(one):
    """A line of bench/run.sh, in GFLOP/s, beside the untuned schedule."""
    at = "" if one["seconds"] is None else f", {one['seconds']:g} s"
    rate, untuned = (one["flop_count"] / one[name] if one[name] else None for name in ("elapsed_ns", "untuned_ns"))
    result_line.emit("search", f"{one['benchmark'].rsplit('/')[-1]}: {one['way']}{at}, seed {one['seed']}", rate, "GFLOP/s",
                     "untuned", untuned, evaluations=one["evaluations"], confirmations=one.get("confirmations"),
                     took_s=round(one["took_s"], 4))


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=int, choices=(1, 2), default=1)
    parser.add_argument("--programs", help="so many of the table's, drawn by lot, or names of them, such as mm64_240_64,mm96_240_128")
    parser.add_argument("--seconds", default="1,10,60", help="of each search")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--only", help="ways whose name has one of these words, such as policy,random")
    parser.add_argument("--threads", type=int, default=1, help="of each kernel")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--training", type=int, default=400, help="evaluations of each training program")
    parser.add_argument("--agent-steps", type=int, default=32_000, help="that each agent walks in training")
    parser.add_argument("--data", help="train on this Parquet file or export instead")
    parser.add_argument("--hardware-class", metavar="CLASS", help="of --data: train on figures of this one only")
    parser.add_argument("--suspect", action="store_true", help="train on doubted figures, too: of a busy host all are")
    parser.add_argument("--plot", type=Path, help="draws the longest searches: best so far against evaluations and seconds")
    parser.add_argument("--out", type=Path, help="keeps every run; OUT.models beside it has the models")
    parser.add_argument("--markdown", type=Path, metavar="FILE.md",
                        help="measures nothing: the table and the summary of what --out, or a record of what was printed, has")
    made = parser.parse_args(given)
    made.seconds = [float(each) for each in made.seconds.split(",") if each]
    made.strategies = [name for name in made.strategies.split(",") if name]
    for name in ("seeds", "threads", "workers", "training", "agent_steps"):
        if getattr(made, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1, not {getattr(made, name)}")
    for name in made.strategies:
        if name not in STRATEGIES:
            parser.error(f"unknown strategy '{name}'{_core.nearest(name, STRATEGIES)}; valid: {', '.join(STRATEGIES)}")
    if made.markdown and not (made.out and made.out.exists()):
        parser.error("--markdown needs the --out of runs that were kept")
    made.only = made.only.split(",") if made.only else []
    # In an order drawn by lot, so that what a run that ends early has is a fair sample.
    programs = list(TEST_PRODUCTS if made.table == 1 else TEST_OTHERS)
    random.Random(1).shuffle(programs)
    if made.programs and made.programs.isdigit():
        programs = programs[:int(made.programs)]
    elif made.programs:
        known = {each.rsplit("/")[-1]: each for each in programs}
        for name in made.programs.split(","):
            if name not in known:
                parser.error(f"table {made.table} has no program '{name}'{_core.nearest(name, list(known))}")
        programs = [known[name] for name in made.programs.split(",")]
    made.benchmarks = programs
    return made


def main():
    given = arguments()
    if given.markdown:
        report(given)
    elif given.out is None:
        import tempfile
        with tempfile.TemporaryDirectory(prefix="loopfleet-search-") as scratch:
            run(given, Runs(None), Path(scratch))
    else:
        run(given, Runs(given.out), given.out.with_suffix(f".models{given.table}"))


def run(given, runs, folder):
    ways = ways_of(given, folder)
    measure(given, ways, runs)
    kept = show(given, runs.found, ways)[0]
    if given.table == 2:
        peers(given, kept)


def report(given):
    found, summaries = read_record(given.out)
    if found:  # else the summaries that were printed
        ways = dict.fromkeys(one["way"] for one in found.values() if is_asked_for(one["way"], given))
        _, summaries = show(given, found, ways)
    if not summaries:
        raise SystemExit(f"search: {given.out} has neither runs of these programs nor a summary")
    given.markdown.write_text(markdown(summaries), encoding="utf-8")


def show(given, found, ways):
    """(the runs, their summaries, which are printed)"""
    kept = [one for one in found.values() if one["threads"] == given.threads]
    summaries = summary(kept, ways, given.benchmarks)
    for line in summaries:
        print(json.dumps(line), flush=True)
    if given.plot:
        draw(kept, ways, given.benchmarks, max(given.seconds), given.plot)
    return kept, summaries


if __name__ == "__main__":
    main()
