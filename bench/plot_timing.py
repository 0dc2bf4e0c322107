#!/usr/bin/env python3
"""Draws docs/measurements/timing.png from the results of bench_timing --raw FILE.

    bench/plot_timing.py FILE docs/measurements/timing.png      (needs python3-matplotlib)
"""

import itertools
import json
import sys

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402


def disagreements(rows, field, keep):
    """Percent by which any two results of one schedule differ, ascending."""
    by_schedule = {}
    for row in rows:
        if keep(row):
            by_schedule.setdefault(row["schedule"], []).append(row[field])
    return sorted(
        100 * abs(a - b) / min(a, b)
        for values in by_schedule.values()
        for a, b in itertools.combinations(values, 2)
    )


def cumulative(axes, values, label, **style):
    if values:
        axes.plot(values, [(i + 1) / len(values) for i in range(len(values))], label=label, **style)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if "elapsed_ns" in row]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    for axes, experiment, title in (
        (left, "quiet", "fresh worker processes"),
        (right, "neighbour", "beside a busy neighbour"),
    ):
        mine = [row for row in rows if row["experiment"] == experiment]
        cumulative(axes, disagreements(mine, "wall_ns", lambda row: True),
                   "wall clock, all grades", color="tab:red", linestyle=":")
        cumulative(axes, disagreements(mine, "elapsed_ns", lambda row: True),
                   "at the reference clock, all grades", color="tab:orange", linestyle="--")
        cumulative(axes, disagreements(mine, "elapsed_ns", lambda row: row["grade"] == "A"),
                   "at the reference clock, grade A", color="tab:blue")
        share = sum(row["grade"] == "A" for row in mine) / len(mine) if mine else 0
        axes.set_title(f"{title}: {len(mine)} results, {share:.0%} grade A")
        axes.set_xlabel("two results of one schedule differ by at most (%)")
        axes.set_xscale("log")
        axes.set_xlim(0.01, 100)
        axes.axvline(1, color="gray", linewidth=0.8)
        axes.grid(alpha=0.3)
    left.set_ylabel("share of pairs")
    right.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(sys.argv[2], dpi=100)


if __name__ == "__main__":
    main()
