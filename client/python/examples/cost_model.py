#!/usr/bin/env python3
"""Cost models from measured schedules: a campaign, its export, and the models of loopfleet.models: gradient-boosted
trees and a small network that predict times, two that only say which of two schedules is faster, and a policy. Each is judged on
programs that it was not trained on, beside a random choice.

    LOOPFLEET_BIN=build/release/bin python client/python/examples/cost_model.py --out docs/examples/cost_model
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

import loopfleet
from loopfleet import campaign
from loopfleet.export import export
from loopfleet.models import CostModel, Measured, evaluate, read_rows
from loopfleet.models.evaluation import split_parts
from loopfleet.rows import rows_of_file
from loopfleet.splits import Split

SIZES = range(64, 257, 32)


def measure(points, programs, folder):
    """A campaign of random walks over some matrix products, exported by program."""
    every = [f"benchmark://mm64_256_16_range-v0/mm{m}_{n}_{k}" for m in SIZES for n in SIZES for k in SIZES]
    chosen = np.random.default_rng(0).permutation(every)[:programs].tolist()
    # Without `unroll`, which seldom changes a kernel: vectors and tiles are written out anyway.
    actions = ["up", "down", "swap_up", "swap_down", *(f"split_{1 << k}" for k in range(1, 7)), "vectorize"]
    spec = campaign.Spec("cost-model", points, chosen, seed=1, actions=actions, min_length=1, max_length=12)
    with loopfleet.LocalCluster(workers=1, database=folder / "results.db"), loopfleet.Client() as client:
        since = time.monotonic()
        progress = campaign.run(spec, folder / "campaign", client)
        print(f"campaign: {progress} in {time.monotonic() - since:.0f} s", flush=True)
    summary = export(rows_of_file(folder / "results.db"), folder / "data", name="matmul schedules",
                     split=Split("program", (0.7, 0.1, 0.2)))
    print(f"export: {dict(summary.rows)} rows, {summary.duplicates} duplicates left out", flush=True)


def plot(data, judgements, out):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parts = split_parts(data, "program", 0)
    test = parts["test"]
    predicted = -CostModel().fit(parts["train"], parts["validation"]).log_ns_per_flop(test.x)
    measured = -test.log_ns_per_flop
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8))
    axes[0].scatter(np.exp2(measured), np.exp2(predicted), s=4, alpha=0.4)
    limit = [np.exp2(measured.min()), np.exp2(measured.max())]
    axes[0].plot(limit, limit, color="black", linewidth=0.8)
    axes[0].set(xscale="log", yscale="log", xlabel="measured GFLOP/s", ylabel="predicted (trees)",
                title="schedules of unseen programs")
    places = np.arange(len(judgements))
    for axis, names, title in ((axes[1], ("pairwise_accuracy",), "which of two is faster"),
                               (axes[2], ("peak_at_1", "peak_at_5"), "best of what is chosen / best")):
        width = 0.8 / len(names)
        for i, name in enumerate(names):
            values = [getattr(one, name) or 0 for one in judgements.values()]  # 0: no figure
            bars = axis.bar(places + i * width, values, width * 0.9, label=name)
            axis.bar_label(bars, [f"{value:.2f}" for value in values], fontsize=8)
        axis.set(ylim=(0, 1.1), title=f"{title} (test)")
        axis.set_xticks(places + 0.4 - width / 2 if len(names) > 1 else places, judgements, fontsize=6)
        axis.legend(fontsize=8, loc="lower left")
    figure.tight_layout()
    figure.savefig(out.with_suffix(".png"), dpi=75)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=6000, help="schedules to be measured")
    parser.add_argument("--programs", type=int, default=100, help="matmuls that they are of")
    parser.add_argument("--folder", type=Path, help="keeps campaign and data set; goes on with one that is there")
    parser.add_argument("--hardware-class", metavar="CLASS", help="use only figures of this one")
    parser.add_argument("--suspect", action="store_true", help="use doubted figures, too: of a busy host all are")
    parser.add_argument("--out", type=Path, default=Path("cost_model"), help="OUT.png and OUT.json")
    given = parser.parse_args()
    chosen = {"hardware_class": given.hardware_class} if given.hardware_class else {}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "data").exists():
            measure(given.points, given.programs, folder)
        data = Measured.of(read_rows(folder / "data", **chosen), use_suspect=given.suspect)
    found = evaluate(data, split="program")
    print(found)
    given.out.with_suffix(".json").write_text(json.dumps(found.to_dict(), indent=1) + "\n")
    plot(data, found.judgements, given.out)


if __name__ == "__main__":
    main()
