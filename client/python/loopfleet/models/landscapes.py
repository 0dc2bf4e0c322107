"""How deep the landscape of each program is: what the best of so many random walks is worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._core import Walk
from ..campaign import outcomes
from ..rows import program_of
from .errors import ModelError, need
from .measured import need_one_condition
from .schedule_features import plain_row

WALKS = (5, 10, 30, 100, 1000)


@dataclass(frozen=True)
class Landscape:
    """Of one program. Speed-ups are over the untuned schedule; a walk without a figure counts as 0."""

    benchmark: str             # or IR text; the first seen of the program
    walks: int
    without_figure: int        # failed, or of grade D
    untuned_ns: float
    best: float                # speed-up of the best walk
    expected: dict[int, float]  # walks -> expected speed-up of the best of them; only up to as many as there are


def landscape(rows: Iterable[Mapping[str, Any]], walks: Sequence[int] = WALKS) -> list[Landscape]:
    """One for each program of ``rows``, which must be all walks of a campaign: an export without
    duplicates has lost how often a tree was reached.

    A row has ``benchmark`` or ``ir``, ``actions``, ``tree_key``, ``elapsed_ns`` (None: it has no figure).
    The untuned schedule is the tree of a row without actions, or else the benchmark's own; programs
    of which it has no figure are left out. ModelError: then none is left, or the figures are of several
    hardware classes.
    """
    rows = [plain_row(row) for row in rows]
    need_one_condition(row for row in rows if row["elapsed_ns"])
    by_program: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        program, _ = program_of(row.get("benchmark"), row.get("ir"))
        if program is not None:
            by_program.setdefault(program, []).append(row)
    found = [one for each in by_program.values() if (one := _landscape(each, walks)) is not None]
    if not found:
        raise ModelError("no program has a figure of its untuned schedule: speed-ups need one "
                         "(a campaign with min_length = 0 measures it)")
    return sorted(found, key=lambda one: one.benchmark)


def expected_best(values: Sequence[float] | np.ndarray, k: int) -> float:
    """Expected largest of ``k`` of the values, drawn without putting any back. ValueError: there
    are fewer than ``k``."""
    ordered = np.sort(np.asarray(values, np.float64))[::-1]
    n = len(ordered)
    if not 1 <= k <= n:
        raise ValueError(f"k must be from 1 to the number of values, {n}, not {k}")
    # The i-th largest is the largest of the drawn with chance C(n - 1 - i, k - 1) / C(n, k).
    chance, total = k / n, 0.0
    for i in range(n - k + 1):
        total += chance * float(ordered[i])
        chance *= (n - k - i) / (n - 1 - i) if n - 1 - i else 0.0
    return total


def rows_of_campaign(folder: str | Path, hardware_class: str | None = None) -> list[dict[str, Any]]:
    """What landscape() takes, of a campaign's folder: the first outcome of each point, with
    ``hardware_class`` the first that was not measured on another one."""
    rows, seen = [], set()
    for each in outcomes(folder):
        if each["point"] in seen:
            continue
        told = each["outcome"]
        of = (told.get("hardware") or {}).get("class")
        if hardware_class and of not in (hardware_class, None):
            continue
        seen.add(each["point"])
        ok = told["status"] == "ok" and told.get("grade") != "D"
        rows.append({"benchmark": told["benchmark"], "ir": told.get("ir"), "actions": told.get("actions"),
                     "tree_key": told.get("tree_key"), "hardware_class": of,
                     "elapsed_ns": told["elapsed_ns"] if ok else None})
    return rows


def table(landscapes: Sequence[Landscape]) -> str:
    """A Markdown table, by program."""
    counts = sorted({k for one in landscapes for k in one.expected})
    lines = ["| program | walks | without figure | untuned, us | " + " | ".join(f"best of {k:,}" for k in counts) + " | best |",
             "|---|" + "---|" * (len(counts) + 4)]
    for one in landscapes:
        cells = " | ".join(f"{one.expected[k]:.2f}" if k in one.expected else "-" for k in counts)
        name = _short(one.benchmark)
        lines.append(f"| {name} | {one.walks:,} | {one.without_figure:,} | {one.untuned_ns / 1000:.3g} | {cells} | {one.best:.2f} |")
    return "\n".join(lines)


def plot(landscapes: Sequence[Landscape], path: str | Path) -> None:
    """Expected speed-up by walks, a line for each program, as PNG or SVG by the name's end."""
    matplotlib = need("matplotlib", "models")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2))
    kinds = sorted({_kind(one.benchmark) for one in landscapes})
    colors = dict(zip(kinds, plt.rcParams["axes.prop_cycle"].by_key()["color"] * len(kinds)))
    for one in landscapes:
        if one.expected:
            axes.plot(list(one.expected), list(one.expected.values()), color=colors[_kind(one.benchmark)], alpha=0.5,
                      linewidth=0.9, marker=".", markersize=4)
    for kind in kinds:
        axes.plot([], [], color=colors[kind], label=kind)
    axes.axhline(1, color="black", linewidth=0.6, linestyle=":")
    axes.set(xscale="log", yscale="log", xlabel="random walks", ylabel="expected best, times the untuned schedule")
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))  # the lines fill the picture
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _landscape(rows: list[Mapping[str, Any]], walks: Sequence[int]) -> Landscape | None:
    first = rows[0]
    benchmark, ir = first.get("benchmark"), first.get("ir")
    starts = (row.get("tree_key") for row in rows if (row.get("benchmark"), row.get("ir")) == (benchmark, ir)
              and row.get("actions") is not None and len(row["actions"]) == 0)
    # Which rules the walks began with is not told: merge_all_first may have changed the benchmark's own tree.
    key = next(filter(None, starts), None) or Walk(benchmark=benchmark or "", ir="" if benchmark else ir or "").tree_key.hex()
    untuned = [row["elapsed_ns"] for row in rows if row.get("tree_key") == key and row["elapsed_ns"]]
    if not untuned:
        return None
    untuned_ns = float(np.median(untuned))
    speed_ups = np.array([untuned_ns / row["elapsed_ns"] if row["elapsed_ns"] else 0.0 for row in rows])
    return Landscape(benchmark or first["ir"], len(rows), int((speed_ups == 0).sum()), untuned_ns,
                     float(speed_ups.max()), {k: expected_best(speed_ups, k) for k in walks if k <= len(rows)})


def _short(benchmark: str) -> str:
    return benchmark.rsplit("/", 1)[-1] if benchmark.startswith("benchmark://") else "IR text"


def _kind(benchmark: str) -> str:
    return _short(benchmark).rstrip("0123456789_") or _short(benchmark)
