#!/usr/bin/env python3
"""Search and learning on programs that no model was trained on. Table 1: the 25 products of LoopTune's test set;
table 2: convolutions, chains, reductions, mm512 and mm1024, beside numpy. Each strategy at each number of seconds; each
model at its first schedule, without a measurement, and after 10 evaluations. Every run has a new cluster, so nothing
is answered from the store, and ends with three new measurements of what it found and of the untuned schedule, in turns.

Prints the lines of bench/run.sh, and at the end a summary for each way. With --out FILE.jsonl every run is kept, and
the same command goes on where it was; models and the database that they are trained on are kept beside it.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import loopfleet
from loopfleet import _core
from loopfleet.models import ComparisonModel, CostModel, Measured, PolicyModel, features
from loopfleet.rows import program_of, rows_of_file
import result_line

TEST_PRODUCTS = [f"benchmark://mm-v0/{name}" for name in (
    "mm112_208_256 mm112_224_128 mm112_256_64 mm112_256_80 mm128_160_224 mm160_224_192 mm176_128_160 mm176_144_160 "
    "mm176_192_160 mm192_192_80 mm192_256_256 mm208_128_256 mm208_160_80 mm208_80_224 mm224_112_176 mm224_208_224 "
    "mm224_224_256 mm224_64_240 mm240_208_144 mm256_160_112 mm64_240_64 mm80_176_224 mm96_160_256 mm96_224_240 "
    "mm96_240_128").split()]
TEST_OTHERS = [f"benchmark://{name}" for name in (
    "conv-v0/conv1_16_18_18__32_16_3_3 conv-v0/conv1_32_30_30__32_32_3_3 conv-v0/conv1_64_16_16__64_64_3_3 "
    "conv-v0/conv1_128_9_9__128_128_3_3 conv-v0/conv1_3_58_58__32_3_3_3 conv-v0/conv1_3_62_62__16_3_7_7 "
    "conv-v0/conv1_96_14_14__48_96_1_1 conv-v0/conv1_48_28_28__96_48_1_1 conv-v0/conv4_16_14_14__16_16_3_3 "
    "conv-v0/conv1_8_40_40__8_8_5_5 program-v0/mmbias112_96_160 program-v0/mmbias256_64_64 "
    "program-v0/twomm64_96_48_80 program-v0/twomm128_128_64_96 program-v0/chain200_300 "
    "program-v0/positive_product33_48_160 program-v0/reduce_add300_700 program-v0/reduce_max128_2000 "
    "program-v0/shift200_500 program-v0/conv1d8192_32 mm-v0/mm512_512_512 mm-v0/mm1024_1024_1024").split()]
# Sizes that the test set does not have in this order.
TRAINING_PRODUCTS = [f"benchmark://mm-v0/mm{m}_{n}_{k}" for m, n, k in (
    (64, 64, 64), (64, 128, 256), (64, 256, 128), (80, 80, 80), (80, 240, 160), (96, 96, 96), (96, 176, 208),
    (112, 112, 112), (112, 160, 240), (128, 128, 128), (128, 64, 256), (128, 256, 192), (144, 160, 176), (144, 240, 96),
    (160, 96, 192), (160, 160, 160), (160, 256, 224), (176, 80, 256), (176, 224, 112), (192, 128, 64), (192, 192, 192),
    (192, 240, 176), (208, 112, 240), (208, 208, 208), (208, 256, 128), (224, 96, 160), (224, 224, 96), (224, 256, 192),
    (240, 176, 80), (240, 240, 240), (256, 64, 192), (256, 128, 224), (256, 208, 96), (256, 256, 256))]
TRAINING_OTHERS = [f"benchmark://{name}" for name in (
    "conv-v0/conv1_16_16_16__16_16_3_3 conv-v0/conv1_16_30_30__16_16_3_3 conv-v0/conv1_32_16_16__32_32_3_3 "
    "conv-v0/conv1_64_8_8__64_64_3_3 conv-v0/conv1_3_66_66__16_3_3_3 conv-v0/conv1_3_34_34__32_3_7_7 "
    "conv-v0/conv1_64_28_28__64_64_1_1 conv-v0/conv4_8_12_12__16_8_3_3 program-v0/mmbias64_64_64 "
    "program-v0/mmbias128_64_96 program-v0/mmbias96_192_128 program-v0/twomm32_48_64_32 program-v0/twomm64_64_64_64 "
    "program-v0/twomm96_32_128_64 program-v0/chain64_64 program-v0/chain256_256 program-v0/positive_product33_48_64 "
    "program-v0/positive_product64_64_128 program-v0/reduce_add64_64 program-v0/reduce_add256_512 "
    "program-v0/reduce_max64_100 program-v0/reduce_max256_256 program-v0/shift64_64 program-v0/shift128_300 "
    "program-v0/conv1d1024_8 program-v0/conv1d4096_16").split()]
STRATEGIES = [name for name, _ in _core.strategies() if name != "auto"]
REPEATS = 3


class Models:
    """Fitted to searches of the training programs, or to a data set; kept in a folder."""

    def __init__(self, folder, cost, policy, comparison):
        self.folder, self.cost, self.policy, self.comparison = folder, cost, policy, comparison

    @classmethod
    def open(cls, given, folder):
        kinds = {"cost.npz": CostModel, "policy.npz": PolicyModel, "comparison.npz": ComparisonModel}
        if not all((folder / name).exists() for name in kinds):
            folder.mkdir(parents=True, exist_ok=True)
            data = training_data(given, folder)
            say(f"fitting models to {len(data):,} schedules of {len(np.unique(data.program))} programs")
            for name, kind in kinds.items():
                kind(seed=1).fit(data).save(folder / name)
        else:
            say(f"models are those of {folder}: --data, --hardware-class, --training and --suspect play no part")
        return cls(folder, *(kind.load(folder / name) for name, kind in kinds.items()))


def training_data(given, folder):
    if given.data:
        from loopfleet.models import read_rows
        rows = read_rows(given.data, **({"hardware_class": given.hardware_class} if given.hardware_class else {}))
    else:
        database = folder / "training.db"
        products = TRAINING_PRODUCTS if given.table == 1 else TRAINING_OTHERS + TRAINING_PRODUCTS[::3]
        with loopfleet.LocalCluster(workers=given.workers, database=database), loopfleet.Client() as client:
            for number, benchmark in enumerate(products):  # again after an interruption: the store answers
                loopfleet.search(benchmark, "genetic", evaluations=given.training, seed=number, client=client,
                                 confirm=False, threads=given.threads)
                loopfleet.search(benchmark, "random", evaluations=given.training // 2, seed=number, client=client,
                                 confirm=False, threads=given.threads)
                say(f"training: {number + 1} of {len(products)} programs")
        rows = list(rows_of_file(database))
    judged = {program_of(benchmark, None)[0] for benchmark in TEST_PRODUCTS + TEST_OTHERS}
    kept = [row for row in rows if program_of(row.get("benchmark"), row.get("ir"))[0] not in judged]
    if len(kept) < len(rows):
        say(f"{len(rows) - len(kept):,} rows of the programs to be judged by were left out of the training")
    return Measured.of(kept, use_suspect=given.suspect)


# ---- ways: (client, benchmark, seconds, seed) -> facts


def searched(found, **facts):
    return {"untuned_ns": found.untuned_ns, "elapsed_ns": found.confirmed_ns, "flop_count": found.flop_count,
            "evaluations": found.evaluations, "took_s": found.seconds, "actions": found.actions,
            "curve": [(point.evaluations, point.seconds, point.best_ns) for point in found.curve], **facts}


def by_strategy(strategy, threads):
    return lambda client, benchmark, seconds, seed: searched(
        loopfleet.search(benchmark, strategy, seconds=seconds, seed=seed, client=client, threads=threads))


def by_model(models, pretrained, threads):
    """Genetic proposals, chosen by a cost model that learns as figures come in."""
    def run(client, benchmark, seconds, seed):
        scorer = (models.cost if pretrained else CostModel()).scorer_for(benchmark, None)
        start = models.policy if pretrained else ()
        found = loopfleet.search(benchmark, "genetic", seconds=seconds, seed=seed, client=client, threads=threads,
                                 scorer=scorer, start=start)
        return searched(found, fits=scorer.fits, model_s=scorer.seconds)
    return run


def after_ten(models, threads):
    """The untuned schedule is one of the 10; the first after it are proposals of the policy."""
    def run(client, benchmark, seconds, seed):
        found = loopfleet.search(benchmark, "genetic", evaluations=10, in_flight=3, seed=seed, client=client,
                                 threads=threads, scorer=models.cost, start=models.policy)
        return searched(found)
    return run


def first_schedule(propose, threads):
    """Chosen without any measurement; then measured."""
    def run(client, benchmark, seconds, seed):
        propose(benchmark)  # what is imported and cached at the first call is no part of choosing
        took_s = []
        for _ in range(5):
            since = time.perf_counter()
            actions = propose(benchmark)
            took_s.append(time.perf_counter() - since)
        jobs = [loopfleet.job(benchmark, each, fresh=True, threads=threads) for each in (actions, [])] * REPEATS
        results = list(client.evaluate_many(jobs))
        best, untuned = ([one.elapsed_ns for one in results[place::2] if one.ok] for place in (0, 1))
        flop_count = next((one.flop_count for one in results if one.ok), 0)
        return {"untuned_ns": float(np.median(untuned)) if untuned else None,
                "elapsed_ns": float(np.median(best)) if best else None, "flop_count": flop_count, "evaluations": 0,
                "took_s": float(np.median(took_s)), "actions": actions}
    return run


def by_cost_alone(models):
    """The schedule that the cost model likes most of 200 random walks, as a baseline for the policy."""
    def propose(benchmark):
        searcher = _core.Searcher(benchmark, strategy="random", seed=1)
        ((number, untuned),) = searcher.ask(1)
        searcher.tell([number], [1.0], 0.0)
        walks = [untuned, *(actions for _, actions in searcher.ask(200))]
        x = features([(benchmark, actions) for actions in walks])
        return walks[int(np.argmin(models.cost.slowness(x)))]
    return propose


def ways_of(given, models):
    """Name -> (function, budgets in seconds; None: it needs none)."""
    ways = {name: (by_strategy(name, given.threads), given.seconds) for name in given.strategies}
    ways["cost model, learning from nothing"] = (by_model(models, False, given.threads), given.seconds)
    ways["policy and cost model, learning on"] = (by_model(models, True, given.threads), given.seconds)
    ways["policy: first schedule"] = (first_schedule(lambda benchmark: models.policy.propose(benchmark)[0], given.threads),
                                      [None])
    ways["cost model: first schedule"] = (first_schedule(by_cost_alone(models), given.threads), [None])
    ways["policy and cost model: 10 evaluations"] = (after_ten(models, given.threads), [None])
    return {name: way for name, way in ways.items() if not given.only or any(word in name for word in given.only)}


# ---- running


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
        for line in whole.splitlines():
            one = json.loads(line)
            self.found[one["key"]] = one

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
                if key not in runs.found:
                    with loopfleet.LocalCluster(workers=given.workers) as cluster, cluster.client() as client:
                        facts = ways[name][0](client, benchmark, budget, seed)
                        peak = client.peak_gflops() * given.threads
                    runs.add({"key": key, "benchmark": benchmark, "way": name, "seconds": budget, "seed": seed,
                              "threads": given.threads, "peak_gflops": peak, **facts})
                emit(runs.found[key])


def emit(one):
    """A line of bench/run.sh, in GFLOP/s, beside the untuned schedule."""
    at = "" if one["seconds"] is None else f", {one['seconds']:g} s"
    rate, untuned = (one["flop_count"] / one[name] if one[name] else None for name in ("elapsed_ns", "untuned_ns"))
    result_line.emit("search", f"{one['benchmark'].rsplit('/')[-1]}: {one['way']}{at}, seed {one['seed']}", rate, "GFLOP/s",
                     "untuned", untuned, evaluations=one["evaluations"], took_s=round(one["took_s"], 4))


def at_peak(one, ns):
    """The Gflop that the core could have done meanwhile. Each cluster has a reference clock of its own, so times of two can
    be compared only so."""
    return ns * 1e-9 * one["peak_gflops"]


def summary(runs, ways, benchmarks):
    """One line for each way and budget: geometric means over programs, wins over random at equal seconds."""
    # A worker in quarantine tells no peak.
    ours = [one for one in runs if one["benchmark"] in benchmarks and one["way"] in ways and one["elapsed_ns"]
            and one["peak_gflops"]]
    best = {}
    for one in ours:
        best[one["benchmark"]] = min(best.get(one["benchmark"], np.inf), at_peak(one, one["elapsed_ns"]))
    untuned = {benchmark: np.median([at_peak(one, one["untuned_ns"]) for one in ours
                                     if one["benchmark"] == benchmark and one["untuned_ns"]]) for benchmark in best}
    groups = {}
    for one in ours:
        groups.setdefault((one["way"], one["seconds"]), {}).setdefault(one["benchmark"], []).append(one)
    lines = []
    for (way, seconds), by_benchmark in groups.items():
        def mean(value):
            return float(np.exp(np.mean([np.mean([np.log(value(one)) for one in each]) for each in by_benchmark.values()])))

        against = groups.get(("random", seconds), {})
        pairs = [[np.median([at_peak(one, one["elapsed_ns"]) for one in of]) for of in (each, against[name])]
                 for name, each in by_benchmark.items() if name in against] if way != "random" else []
        at = "" if seconds is None else f", {seconds:g} s"
        lines.append({
            "bench": "search", "case": f"summary: {way}{at}", "value": mean(lambda one: untuned[one["benchmark"]] / at_peak(one, one["elapsed_ns"])),
            "unit": "times the untuned schedule", "peer": None, "peer_value": None, "ratio": None,
            "programs": len(by_benchmark),
            "share_of_peak": mean(lambda one: one["flop_count"] / one["elapsed_ns"] / one["peak_gflops"]),
            "share_of_best": mean(lambda one: best[one["benchmark"]] / at_peak(one, one["elapsed_ns"])),
            "evaluations": float(np.mean([one["evaluations"] for each in by_benchmark.values() for one in each])),
            "median_took_s": float(np.median([one["took_s"] for each in by_benchmark.values() for one in each])),
            "ahead_of_random": f"{sum(a < b for a, b in pairs)} of {len(pairs)}" if pairs else None})
    return lines


def draw(runs, ways, benchmarks, seconds, path):
    """Best so far as a share of the best ever found, a line for each way: geometric means over programs, against
    evaluations and against seconds, of searches of so many. Single figures, before they are confirmed."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ours = [one for one in runs if one["benchmark"] in benchmarks and one["elapsed_ns"] and one["peak_gflops"]]
    best = {name: min(at_peak(one, one["elapsed_ns"]) for one in ours if one["benchmark"] == name)
            for name in {one["benchmark"] for one in ours}}
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
        found = [one for one in runs if one["benchmark"] == told["benchmark"] and one["elapsed_ns"] and one["peak_gflops"]]
        if not found:
            continue
        best = min(found, key=lambda one: at_peak(one, one["elapsed_ns"]))
        rate = best["flop_count"] / best["elapsed_ns"]
        numpy_rate = best["flop_count"] / told["elapsed_ns"] if told["elapsed_ns"] else None
        print(json.dumps({"bench": "search", "case": f"{told['benchmark'].rsplit('/')[-1]}: best of all ways", "value": rate,
                          "unit": "GFLOP/s", "peer": told["peer"], "peer_value": numpy_rate,
                          "ratio": rate / numpy_rate if numpy_rate else None}), flush=True)


def say(text):
    print(text, file=sys.stderr, flush=True)


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
    parser.add_argument("--data", help="train on this Parquet file or export instead")
    parser.add_argument("--hardware-class", metavar="CLASS", help="of --data: train on figures of this one only")
    parser.add_argument("--suspect", action="store_true", help="train on doubted figures, too: of a busy host all are")
    parser.add_argument("--plot", type=Path, help="draws the longest searches: best so far against evaluations and seconds")
    parser.add_argument("--out", type=Path, help="keeps every run; OUT.models beside it has the models")
    made = parser.parse_args(given)
    made.seconds = [float(each) for each in made.seconds.split(",") if each]
    made.strategies = [name for name in made.strategies.split(",") if name]
    for name in ("seeds", "threads", "workers", "training"):
        if getattr(made, name) < 1:
            parser.error(f"--{name} must be at least 1, not {getattr(made, name)}")
    for name in made.strategies:
        if name not in STRATEGIES:
            parser.error(f"unknown strategy '{name}'{_core.nearest(name, STRATEGIES)}; valid: {', '.join(STRATEGIES)}")
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
    if given.out is None:
        import tempfile
        with tempfile.TemporaryDirectory(prefix="loopfleet-search-") as scratch:
            run(given, Runs(None), Path(scratch))
    else:
        run(given, Runs(given.out), given.out.with_suffix(f".models{given.table}"))


def run(given, runs, folder):
    ways = ways_of(given, Models.open(given, folder))
    measure(given, ways, runs)
    kept = [one for one in runs.found.values() if one["threads"] == given.threads]
    for line in summary(kept, ways, given.benchmarks):
        print(json.dumps(line), flush=True)
    if given.plot:
        draw(kept, ways, given.benchmarks, max(given.seconds), given.plot)
    if given.table == 2:
        peers(given, kept)


if __name__ == "__main__":
    main()
