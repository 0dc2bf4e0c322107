#!/usr/bin/env python3
"""The table, record and picture of what bench/run.sh llvm_agents trained and judged, from its folder.

    build/python/bin/python bench/llvm_agents_table.py agents --out docs/measurements/DATE-llvm_agents.jsonl --picture FILE.png
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import geometric_mean

import numpy as np

LABELS = {"graph": "GATv2 and PPO", "features": "Autophase and PPO (SB3)", "rllib": "Autophase and PPO (RLlib)",
          "tabular": "tabular Q", "random": "random search", "greedy": "greedy search",
          "unshared": "GATv2 and PPO, an encoder each for policy and value"}


def fewest_within(row, most, column):
    """Column 0: evaluations, 1: seconds of a processor."""
    return min([row["start"], *(point[3] for point in row["curve"] if point[column] <= most)])


def ratio(rows, most, column):
    return geometric_mean(row["Oz"] / max(fewest_within(row, most, column), 1) for row in rows)


def mean_reward(rows, most, column):
    """As CompilerGym's leaderboard has it: the geometric mean of the share of -Oz's reduction; without programs that
    -Oz does not shrink."""
    return geometric_mean(max((row["start"] - fewest_within(row, most, column)) / (row["start"] - row["Oz"]), 1e-3)
                          for row in rows if row["Oz"] < row["start"])


def spread(values):
    mean = f"{np.mean(values):.3f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.3f} to {max(values):.3f})"


def draw(judged, trained, arguments):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, (learning, by_evaluations, by_seconds) = pyplot.subplots(1, 3, figsize=(12, 3.8))
    colours = {method: f"C{place}" for place, method in enumerate(LABELS)}
    for name, curve in trained.items():
        method = name.partition("-")[0]
        smooth = [float(np.mean([row["oz_ratio"] for row in curve[max(0, place - 4):place + 1]]))
                  for place in range(len(curve))]
        learning.plot([row["steps"] for row in curve], smooth, color=colours[method], linewidth=1)
    learning.set(title="training, programs of Csmith", xlabel="steps", ylabel="-Oz's instructions / the best state's")
    for axis, column, most, label in ((by_evaluations, 0, 400, "evaluations"),
                                      (by_seconds, 1, arguments.seconds, "seconds of a processor")):
        places = np.linspace(0, most, 81)
        for method, seeds in judged.items():
            values = np.array([[ratio(rows, place, column) for place in places] for rows in seeds])
            axis.plot(places, values.mean(0), color=colours[method], label=LABELS[method])
            axis.fill_between(places, values.min(0), values.max(0), color=colours[method], alpha=0.2)
        axis.axhline(1.0, color="black", linewidth=0.8)
        axis.set(title="programs of Debian", xlabel=label)
    by_evaluations.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(arguments.picture, dpi=92)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the --folder of bench/run.sh llvm_agents")
    parser.add_argument("--evaluations", type=int, default=80, help="of a search of one program")
    parser.add_argument("--seconds", type=float, default=3, help="of a processor, of a search of one program")
    parser.add_argument("--machine", default="", help="noted in the record")
    parser.add_argument("--out", help="writes all runs as JSON lines")
    parser.add_argument("--picture", help="a PNG file")
    arguments = parser.parse_args()
    judged = {}
    for path in sorted(arguments.folder.glob("judged-*.json")):
        rows = json.loads(path.read_text())
        judged.setdefault(rows[0]["method"], []).append(rows)
    trained = {path.stem: json.loads(path.read_text()) for path in sorted(arguments.folder.glob("*.json"))
               if not path.stem.startswith("judged")}
    any_rows = next(iter(judged.values()))[0]
    print(f"| | {arguments.evaluations} evaluations | {arguments.seconds:g} s | "
          f"reward, {arguments.evaluations} evaluations | evaluations in those seconds |\n|---|---|---|---|---|")
    for name, column in (("no pass", "start"), ("-O3", "O3"), ("-Oz, every function minsize", "OzAttr")):
        value = geometric_mean(row["Oz"] / row[column] for row in any_rows)
        print(f"| {name} | {value:.3f} | {value:.3f} | | |")
    for method, seeds in sorted(judged.items(), key=lambda item: np.mean([ratio(rows, arguments.evaluations, 0)
                                                                        for rows in item[1]])):
        within = [max([0, *(point[0] for point in row["curve"] if point[1] <= arguments.seconds)])
                  for rows in seeds for row in rows]
        print(f"| {LABELS[method]} | {spread([ratio(rows, arguments.evaluations, 0) for rows in seeds])} | "
              f"{spread([ratio(rows, arguments.seconds, 1) for rows in seeds])} | "
              f"{spread([mean_reward(rows, arguments.evaluations, 0) for rows in seeds])} | {np.median(within):.0f} |")
    for name, curve in trained.items():
        print(f"{name}: {curve[-1]}", file=sys.stderr)
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            file.write(json.dumps({"machine": arguments.machine,
                                   "columns": ["evaluations", "processor_seconds", "seconds", "fewest"]}) + "\n")
            for name, curve in trained.items():
                file.write(json.dumps({"trained": name, "curve": curve}) + "\n")
            for seeds in judged.values():
                for rows in seeds:
                    for row in rows:
                        kept = [point for place, point in enumerate(row["curve"]) if place in (0, len(row["curve"]) - 1)
                                or point[3] < row["curve"][place - 1][3]]
                        file.write(json.dumps({**row, "curve": kept}) + "\n")
    if arguments.picture:
        draw(judged, trained, arguments)


if __name__ == "__main__":
    main()
