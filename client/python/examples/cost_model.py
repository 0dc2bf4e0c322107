#!/usr/bin/env python3
"""Cost models from measured schedules: a campaign, its export, and three models of what it says: gradient-boosted
trees (xgboost), a small network, and a network that only says which of two schedules is faster. Each is judged on
programs that it was not trained on, beside a random choice.

    LOOPFLEET_BIN=build/release/bin python client/python/examples/cost_model.py --out docs/examples/cost_model
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import xgboost
from torch import nn

import loopfleet
from loopfleet import campaign
from loopfleet.export import export
from loopfleet.rows import rows_of_file
from loopfleet.splits import PARTS, Split
from loopfleet.torch_data import ScheduleDataset

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


class Part:
    """Features, logarithms of GFLOP/s and programs of one part."""

    def __init__(self, folder, name, loops=12):
        data = ScheduleDataset(folder / "data", name)
        count = np.log2(np.maximum(data.figures[:, 0], 1))[:, None]
        self.x = np.concatenate([np.log1p(np.abs(data.loops[:, :loops])).reshape(len(data), -1),
                                 np.log1p(data.strides), data.mask.sum(1, keepdims=True), count], 1).astype(np.float32)
        self.y = np.log(data.figures[:, 2])
        self.program = data.program

    def pairs(self, rng, most, gap=0.05):
        """Rows of one program whose figures differ by more than noise, the order by chance."""
        first, second = [], []
        for program in np.unique(self.program):
            rows = np.flatnonzero(self.program == program)
            a, b = rng.choice(rows, (2, 20 * len(rows)))
            keep = np.abs(self.y[a] - self.y[b]) > gap
            first.append(a[keep])
            second.append(b[keep])
        first, second = np.concatenate(first), np.concatenate(second)
        kept = rng.permutation(len(first))[:most]
        return first[kept], second[kept]


class Network(nn.Module):
    """One number for a schedule. Features are centred and scaled by the training part's."""

    def __init__(self, x):
        super().__init__()
        self.register_buffer("mean", torch.tensor(x.mean(0)))
        self.register_buffer("scale", torch.tensor(np.maximum(x.std(0), 1e-3)))
        self.layers = nn.Sequential(nn.Linear(x.shape[1], 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(),
                                    nn.Linear(64, 1))

    def forward(self, x):
        return self.layers(((x - self.mean) / self.scale).clamp(-5, 5))[:, 0]

    def predict(self, x):
        with torch.no_grad():
            return self(torch.tensor(x)).numpy()


def fit(network, loss_of, rows, epochs, better):
    """Adam; of all epochs the one that does best on the validation part."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=1e-3)
    best, kept = -np.inf, None
    for _ in range(epochs):
        for part in torch.randperm(rows).split(128):
            loss = loss_of(part)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if (score := better()) > best:
            best, kept = score, {key: value.clone() for key, value in network.state_dict().items()}
    network.load_state_dict(kept)
    return network


def fit_trees(train, validation):
    trees = xgboost.train({"max_depth": 6, "eta": 0.05, "subsample": 0.8, "nthread": 2, "seed": 1},
                          xgboost.DMatrix(train.x, train.y), 600, verbose_eval=False, early_stopping_rounds=40,
                          evals=[(xgboost.DMatrix(validation.x, validation.y), "validation")])
    best = (0, trees.best_iteration + 1)
    return lambda x: trees.predict(xgboost.DMatrix(x), iteration_range=best)


def fit_mlp(train, validation, epochs):
    network, x, y = Network(train.x), torch.tensor(train.x), torch.tensor(train.y)
    centre = y.mean()
    fitted = fit(network, lambda part: (network(x[part]) - (y[part] - centre)).square().mean(), len(y), epochs,
                 lambda: -float(np.mean((network.predict(validation.x) + centre.item() - validation.y) ** 2)))
    return lambda x: fitted.predict(x) + centre.item()


def fit_pairwise(train, validation, epochs, rng):
    """Bradley and Terry's model: the faster of two has the higher number, by a logistic loss. The numbers have
    no unit, so there is no error of them."""
    network, x = Network(train.x), torch.tensor(train.x)
    first, second = map(torch.tensor, train.pairs(rng, 40_000))
    faster = torch.tensor(train.y[first] > train.y[second]).float()

    def loss_of(part):
        difference = network(x[first[part]]) - network(x[second[part]])
        return nn.functional.binary_cross_entropy_with_logits(difference, faster[part])

    judges = validation.pairs(np.random.default_rng(2), 20_000)
    fitted = fit(network, loss_of, len(first), max(1, epochs // 4),
                 lambda: pairwise_accuracy(validation, network.predict(validation.x), judges))
    return fitted.predict


def pairwise_accuracy(part, predicted, pairs):
    first, second = pairs
    return float(np.mean((predicted[first] > predicted[second]) == (part.y[first] > part.y[second])))


def judge(part, predicted, has_unit=True):
    """peak@k: the best figure among the k schedules that the model likes most, as a share of the program's best;
    mean over programs."""
    peaks = {1: [], 5: []}
    for program in np.unique(part.program):
        rows = np.flatnonzero(part.program == program)
        order = rows[np.argsort(-predicted[rows])]
        for k, values in peaks.items():
            values.append(np.exp(part.y[order[:k]].max() - part.y[rows].max()))
    pairs = part.pairs(np.random.default_rng(3), 20_000)
    return {"rmse_log": float(np.sqrt(np.mean((predicted - part.y) ** 2))) if has_unit else None,
            "pairwise_accuracy": pairwise_accuracy(part, predicted, pairs),
            "peak@1": float(np.mean(peaks[1])), "peak@5": float(np.mean(peaks[5]))}


def judge_chance(train, part, rng):
    """What the same numbers are without a model: the training part's mean, and random choices."""
    several = [judge(part, rng.random(len(part.y)), has_unit=False) for _ in range(200)]
    chance = {key: float(np.mean([one[key] for one in several])) for key in ("pairwise_accuracy", "peak@1", "peak@5")}
    return {"rmse_log": float(np.sqrt(np.mean((train.y.mean() - part.y) ** 2))), **chance}


def plot(table, test, predicted, out):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8))
    axes[0].scatter(np.exp(test.y), np.exp(predicted), s=4, alpha=0.4)
    limit = [np.exp(test.y.min()), np.exp(test.y.max())]
    axes[0].plot(limit, limit, color="black", linewidth=0.8)
    axes[0].set(xscale="log", yscale="log", xlabel="measured GFLOP/s", ylabel="predicted (xgboost)",
                title="schedules of unseen programs")
    models = list(table)
    for axis, keys, title in ((axes[1], ("pairwise_accuracy",), "which of two is faster"),
                              (axes[2], ("peak@1", "peak@5"), "best of what is chosen / best")):
        width = 0.8 / len(keys)
        for i, key in enumerate(keys):
            places = np.arange(len(models)) + i * width
            values = [table[name]["test"][key] for name in models]
            bars = axis.bar(places, values, width * 0.9, label=key)
            axis.bar_label(bars, [f"{value:.2f}" for value in values], fontsize=8)
        axis.set(ylim=(0, 1.1), title=f"{title} (test)")
        axis.set_xticks(np.arange(len(models)) + 0.4 - width / 2 if len(keys) > 1 else np.arange(len(models)), models,
                        fontsize=8)
        axis.legend(fontsize=8, loc="lower left")
    figure.tight_layout()
    figure.savefig(out.with_suffix(".png"), dpi=75)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=6000, help="schedules to be measured")
    parser.add_argument("--programs", type=int, default=100, help="matmuls that they are of")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--folder", type=Path, help="keeps campaign and data set; goes on with one that is there")
    parser.add_argument("--out", type=Path, default=Path("cost_model"), help="OUT.png and OUT.json")
    given = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "data").exists():
            measure(given.points, given.programs, folder)
        parts = {name: Part(folder, name) for name in PARTS}
    train, validation, test = parts.values()
    rng = np.random.default_rng(1)
    models = {"xgboost": fit_trees(train, validation), "MLP": fit_mlp(train, validation, given.epochs),
              "pairwise": fit_pairwise(train, validation, given.epochs, rng)}
    table = {name: {part: judge(data, predict(data.x), name != "pairwise") for part, data in parts.items()}
             for name, predict in models.items()}
    table["random"] = {part: judge_chance(train, data, rng) for part, data in parts.items()}
    print(f"{'model':>9} {'part':>11} {'RMSE(log)':>9} {'pairwise':>8} {'peak@1':>7} {'peak@5':>7}")
    for name, by_part in table.items():
        for part, one in by_part.items():
            error = "-" if one["rmse_log"] is None else f"{one['rmse_log']:.3f}"
            print(f"{name:>9} {part:>11} {error:>9} {one['pairwise_accuracy']:8.3f} {one['peak@1']:7.3f} "
                  f"{one['peak@5']:7.3f}")
    rows = {part: {"rows": len(data.y), "programs": len(np.unique(data.program))} for part, data in parts.items()}
    given.out.with_suffix(".json").write_text(json.dumps({"parts": rows, "models": table}, indent=1) + "\n")
    plot(table, test, models["xgboost"](test.x), given.out)


if __name__ == "__main__":
    main()
