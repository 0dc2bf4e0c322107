"""What the runs of bench/run.sh search show: a summary of each way, the table of the docs, the curves, numpy beside them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

ENOUGH = 0.95      # share of a program's best, at which a search is nearly done
OVER_BUDGET = 1.25  # times its seconds
RESAMPLES = 2000


def read_record(path):
    """(runs, summaries) of the lines of a file: of --out, or what the bench printed."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return ({one["key"]: one for one in lines if "key" in one},
            [one for one in lines if str(one.get("case", "")).startswith("summary: ")])


def at_peak(one, ns):
    """The Gflop that the core could have done meanwhile. Each cluster has a reference clock of its own, so times of two can
    be compared only so."""
    return ns * 1e-9 * one["peak_gflops"]


def is_comparable(one):
    """It has a figure, and a peak to compare it by: a worker in quarantine tells none."""
    return bool(one["elapsed_ns"] and one["peak_gflops"])


def best_of(runs):
    """Benchmark -> the best that any of the runs found."""
    best = {}
    for one in runs:
        best[one["benchmark"]] = min(best.get(one["benchmark"], np.inf), at_peak(one, one["elapsed_ns"]))
    return best


def summary(runs, ways, benchmarks):
    """One line for each way and budget: geometric means over programs, and how it did beside random at equal seconds."""
    asked = [one for one in runs if one["benchmark"] in benchmarks and one["way"] in ways]
    ours = [one for one in asked if is_comparable(one)]
    best = best_of(ours)
    untuned = {benchmark: np.median([at_peak(one, one["untuned_ns"]) for one in ours
                                     if one["benchmark"] == benchmark and one["untuned_ns"]]) for benchmark in best}
    groups = {}
    for one in asked:
        groups.setdefault((one["way"], one["seconds"]), []).append(one)
    groups = {key: Group(key, of, best, untuned) for key, of in groups.items()}
    longest = max((seconds for way, seconds in groups if way == "random"), default=None)
    return [{"bench": "search", "case": group.case, **group.facts(),
             **group.beside(groups.get(("random", group.seconds)), groups.get(("random", group.seconds or longest)))}
            for group in groups.values()]


class Group:
    """The runs of one way and budget."""

    def __init__(self, key, runs, best, untuned):
        self.way, self.seconds = key
        self.runs, self.best, self.untuned = runs, best, untuned
        self.programs = {}
        for one in filter(is_comparable, runs):
            self.programs.setdefault(one["benchmark"], []).append(one)

    @property
    def case(self):
        return f"summary: {self.way}" + ("" if self.seconds is None else f", {self.seconds:g} s")

    def facts(self):
        took_s = [one["took_s"] for one in self.runs]
        confirmations = [one["confirmations"] for one in self.runs if "confirmations" in one]
        shares = self._logs(lambda one: self.best[one["benchmark"]] / at_peak(one, one["elapsed_ns"]))
        to_95 = list(self.evaluations_to_95().values())
        return {
            "value": mean(self._logs(lambda one: self.untuned[one["benchmark"]] / at_peak(one, one["elapsed_ns"]))),
            "unit": "times the untuned schedule", "peer": None, "peer_value": None, "ratio": None,
            "programs": len(self.programs),
            "without_figure": sum(not one["elapsed_ns"] for one in self.runs),
            "without_peak": sum(not one["peak_gflops"] for one in self.runs),
            "disturbed": sum(one.get("disturbed", False) for one in self.runs),
            "share_of_peak": mean(self._logs(lambda one: one["flop_count"] / one["elapsed_ns"] / one["peak_gflops"])),
            "share_of_best": mean(shares), "share_of_best_interval": interval(shares),
            "evaluations": float(np.mean([one["evaluations"] for one in self.runs])),
            "confirmations": float(np.mean(confirmations)) if confirmations else None,
            "evaluations_to_95": finite(np.median(to_95)) if to_95 else None,
            "median_took_s": float(np.median(took_s)), "most_took_s": float(max(took_s)),
            "over_budget": None if self.seconds is None else sum(each > OVER_BUDGET * self.seconds for each in took_s)}

    def beside(self, same_seconds, random):
        """`random` has the longest seconds where this way has none: what a search needs depends little on what it may use."""
        if self.way == "random":
            return {"ahead_of_random": None, "fewer_than_random": None}
        ours, theirs = ({} if group is None else {
            name: np.median([at_peak(one, one["elapsed_ns"]) for one in of]) for name, of in group.programs.items()}
            for group in (self, same_seconds))
        fewer, more = self.evaluations_to_95(), {} if random is None else random.evaluations_to_95()
        return {"ahead_of_random": share_of_wins(ours, theirs), "fewer_than_random": share_of_wins(fewer, more, tie=0.5)}

    def evaluations_to_95(self):
        """Program -> evaluations until the best so far was 0.95 of the program's best; infinite: it never was."""
        found = {name: [evaluations_until(one, self.best[name] / ENOUGH) for one in of if one.get("curve")]
                 for name, of in self.programs.items()}
        return {name: np.median(of) for name, of in found.items() if of}

    def _logs(self, value):
        """Of each program: the mean over its runs."""
        return [np.mean([np.log(value(one)) for one in of]) for of in self.programs.values()]


def evaluations_until(one, goal):
    return next((evaluations for evaluations, _, ns in one["curve"] if at_peak(one, ns) <= goal), np.inf)


def share_of_wins(ours, theirs, tie=0.0):
    """On how many programs ours is the smaller; None: no program has both."""
    pairs = [(ours[name], theirs[name]) for name in ours if name in theirs]
    return f"{sum(1.0 if a < b else tie if a == b else 0.0 for a, b in pairs):g} of {len(pairs)}" if pairs else None


def mean(logs):
    return float(np.exp(np.mean(logs))) if logs else None


def interval(logs):
    """95 % of the geometric means of programs drawn again, with replacement; None: there are fewer than two."""
    if len(logs) < 2:
        return None
    means = np.random.default_rng(1).choice(logs, (RESAMPLES, len(logs))).mean(1)
    return np.exp(np.quantile(means, (0.025, 0.975))).tolist()


def finite(value):
    return float(value) if np.isfinite(value) else None


# ---- the table of docs/SEARCH.md


def markdown(summaries):
    """One row for each way: the searches by their seconds, then models by their first schedule and ten evaluations."""
    timed, untimed = {}, {}
    for line in summaries:
        way, seconds = re.fullmatch(r"summary: (.*?)(?:, ([\d.e+-]+) s)?", line["case"]).groups()
        if seconds is not None:
            timed.setdefault(way, {})[float(seconds)] = line
        else:
            way, _, budget = way.rpartition(": ")
            untimed.setdefault(way, {})[budget] = line
    seconds = sorted({each for row in timed.values() for each in row})
    budgets = sorted({each for row in untimed.values() for each in row}, key=lambda budget: budget != "first schedule")
    tables = [table_of(timed, {each: f"{each:g} s" for each in seconds}), table_of(untimed, {each: each for each in budgets})]
    return "\n\n".join("\n".join(f"| {' | '.join(row)} |" for row in table) for table in tables if table) + "\n"


def table_of(ways, budgets):
    if not ways:
        return []
    head = ["way"]
    for budget, title in budgets.items():
        counts = {row[budget]["programs"] for row in ways.values() if budget in row}
        programs = str(min(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
        head += [f"{title}, {programs} programs: speed-up", "of peak", "of best", "evaluations"]
    rows = [[way] + [cell for budget in budgets for cell in cells_of(row.get(budget))] for way, row in ways.items()]
    return [head, ["---"] * len(head), *rows]


def cells_of(line):
    if line is None or line["value"] is None:
        return [""] * 4
    return [f"{line['value']:.2f}", f"{line['share_of_peak']:.3f}", f"{line['share_of_best']:.3f}",
            f"{line['evaluations']:,.0f}"]


# ---- curves, and numpy


def draw(runs, ways, benchmarks, seconds, path):
    """Best so far as a share of the best ever found, a line for each way: geometric means over programs, against
    evaluations and against seconds, of searches of so many. Single figures, before they are confirmed."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ours = [one for one in runs if one["benchmark"] in benchmarks and is_comparable(one)]
    best = best_of(ours)
    if not any(one["seconds"] == seconds and one.get("curve") for one in ours):
        raise SystemExit(f"search: no run of {seconds:g} s has a curve")
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True)
    for number, way in enumerate(ways):
        curves = [one for one in ours if one["way"] == way and one["seconds"] == seconds and one.get("curve")]
        if not curves:
            continue
        for column, (axis, most) in enumerate(zip(axes, (max(one["evaluations"] for one in curves), seconds))):
            at = np.geomspace(1 if column == 0 else 0.05, most, 120)
            shares = [np.mean([np.log(best[one["benchmark"]] / at_peak(one, best_at(one, column, x))) for one in curves]) for x in at]
            axis.plot(at, np.exp(shares), label=way, color=plt.cm.tab20(number), linewidth=1.3)
    axes[0].set(xscale="log", xlabel="evaluations", ylabel="share of the best ever found")
    axes[1].set(xscale="log", xlabel="seconds")
    axes[1].legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    for axis in axes:
        axis.grid(alpha=0.3, linewidth=0.5)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def best_at(one, column, x):
    """The best figure of a search after x evaluations (column 0) or seconds (1); before the first: untuned."""
    reached = [point[2] for point in one["curve"] if point[column] <= x]
    return reached[-1] if reached else one["untuned_ns"]


def peers(given, runs):
    """The best ever found beside numpy, which is measured now, while no cluster runs."""
    script = Path(__file__).resolve().parents[1] / "peers/numpy_programs.py"
    done = subprocess.run([sys.executable, str(script), "--threads", str(given.threads), *given.benchmarks],
                          capture_output=True, text=True, check=True)
    for told in map(json.loads, done.stdout.splitlines()):
        found = [one for one in runs if one["benchmark"] == told["benchmark"] and is_comparable(one)]
        if not found:
            continue
        best = min(found, key=lambda one: at_peak(one, one["elapsed_ns"]))
        rate = best["flop_count"] / best["elapsed_ns"]
        numpy_rate = best["flop_count"] / told["elapsed_ns"] if told["elapsed_ns"] else None
        print(json.dumps({"bench": "search", "case": f"{told['benchmark'].rsplit('/')[-1]}: best of all ways", "value": rate,
                          "unit": "GFLOP/s", "peer": told["peer"], "peer_value": numpy_rate,
                          "ratio": rate / numpy_rate if numpy_rate else None}), flush=True)
