#!/usr/bin/env python3
"""Reads outcomes as `loopfleet submit --wait --jsonl` prints them and ends in the quickstart's table.

Exit status 1 if an outcome is missing, or if a benchmark has no verified default schedule.
"""

import argparse
import collections
import json
import sys
import time


class Benchmark:
    """What is known of one benchmark so far."""

    def __init__(self):
        self.trees = set()
        self.default = None  # the outcome of the empty list of actions
        self.best = None

    def add(self, outcome):
        if outcome["status"] != "ok":
            return
        self.trees.add(outcome["tree_key"])
        if not outcome["actions"]:
            self.default = outcome
        if outcome["grade"] == "D":
            return  # no more than an order of magnitude; v_best leaves it out, too
        if self.best is None or outcome["gflop_per_second"] > self.best["gflop_per_second"]:
            self.best = outcome


def read_outcomes(lines, expected):
    """The outcomes, and the seconds from now until the last fresh one arrived."""
    outcomes, fresh_seconds = [], 0.0
    start = time.monotonic()
    for line in lines:
        outcomes.append(json.loads(line))
        if outcomes[-1].get("source") == "measured":
            fresh_seconds = time.monotonic() - start
        if sys.stderr.isatty():
            print(f"\r  {len(outcomes)} of {expected} outcomes", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return outcomes, fresh_seconds


def short_name(uri):
    return uri.removeprefix("benchmark://")


def table(benchmarks):
    head = ("benchmark", "trees", "default GFLOP/s", "best GFLOP/s", "spread", "actions of the best")
    rows = [head]
    for uri, benchmark in benchmarks.items():
        default, best = benchmark.default, benchmark.best
        rows.append((
            short_name(uri),
            str(len(benchmark.trees)),
            f"{default['gflop_per_second']:.2f}" if default else "-",
            f"{best['gflop_per_second']:.2f}" if best else "-",
            f"{100 * best['spread']:.1f} %" if best else "-",
            (" ".join(best["actions"]) or "(none: the default schedule)") if best else "-",
        ))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head) - 1)]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:])]
        yield "  ".join([*cells, row[-1]])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--expected", type=int, required=True, help="how many jobs were submitted")
    parser.add_argument("--database", required=True, help="its path, to be shown")
    arguments = parser.parse_args()

    outcomes, fresh_seconds = read_outcomes(sys.stdin, arguments.expected)
    benchmarks, failures = {}, collections.Counter()
    for outcome in outcomes:
        benchmarks.setdefault(outcome["benchmark"], Benchmark()).add(outcome)
        if outcome["status"] != "ok":
            failures[outcome["error"]["code"]] += 1
    sources = collections.Counter(o["source"] for o in outcomes if o["status"] == "ok")

    print("\n".join(table(benchmarks)))
    print()
    trees = sum(len(benchmark.trees) for benchmark in benchmarks.values())
    print(f"{len(outcomes)} jobs, {trees} distinct trees, every output verified before it was timed")
    fresh = sources["measured"]
    rate = f": {fresh / fresh_seconds:.0f} fresh evaluations per second" if fresh else ""
    print(f"{fresh} measured now{rate}; {sources['same_code']} with the machine code of one of these; "
          f"{sources['stored'] + sources['coalesced']} answered from the store")
    for code, count in failures.most_common():
        print(f"{count} failed with {code}")
    print(f"database: {arguments.database}")

    lost = arguments.expected - len(outcomes)
    without_default = [short_name(uri) for uri, b in benchmarks.items() if b.default is None]
    if lost:
        print(f"{lost} outcomes are missing", file=sys.stderr)
    if without_default:
        print(f"no result for the default schedule of {', '.join(without_default)}", file=sys.stderr)
    return 1 if lost or without_default or not benchmarks else 0


if __name__ == "__main__":
    sys.exit(main())
