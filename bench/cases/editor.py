#!/usr/bin/env python3
"""The schedule editor on a screen without a terminal and a local cluster: from a key that changes the tree to the figure
of this process, and to the graded one. Prints the lines of bench/run.sh."""

import argparse
import asyncio
import os
import random
import tempfile
import time

import numpy as np
from textual import events

import loopfleet
from loopfleet.tui.editor import Editor
from loopfleet.tui.screen import EditorApp
from loopfleet.tui.sources import sources_of
import result_line

BENCHMARK = "benchmark://program-v0/positive_product33_48_64"
GOALS_MS = {"local": 60, "graded": 150}  # medians
LIMIT_S = 60  # of one figure
EDITS = ["shift+up", "shift+down", "backspace", "v", "u", "u", "r"]


def emit(case, value, **details):
    result_line.emit("editor", case, value, "ms", **details)


def next_keys(generator):
    """Moves, and a key or a split that may change the tree."""
    moves = [generator.choice(["up", "down"])] * generator.randrange(3)
    if generator.random() < 0.4:
        return moves + ["s", *str(generator.choice([2, 3, 4, 8, 16])), "enter"]
    return moves + [generator.choice(EDITS)]


async def press(app, key):
    app.post_message(events.Key(key, key if len(key) == 1 else None))
    await asyncio.sleep(0)


async def figure_times(app, pilot, since):
    """Milliseconds until each figure of the tree was drawn; None: it has none."""
    took = {"local": None, "graded": None}
    figure = app.editor.figure
    while (figure.is_measured or figure.is_measured_here) and time.perf_counter() - since < LIMIT_S:
        await asyncio.sleep(0.001)
        now = (time.perf_counter() - since) * 1e3
        if took["local"] is None and not figure.is_measured_here:
            took["local"] = now
        if took["graded"] is None and not figure.is_measured:
            took["graded"] = now
    missing = {"local": figure.local_failure, "graded": figure.graded_failure}
    now = (time.perf_counter() - since) * 1e3
    return {kind: None if missing[kind] else took[kind] or now for kind in took}


async def drive(client, count, seed):
    editor = Editor(loopfleet.LoopTree(BENCHMARK), title="bench", sources=sources_of(client))
    app, generator, rows = EditorApp(editor), random.Random(seed), []
    async with app.run_test(size=(120, 30)) as pilot:
        await figure_times(app, pilot, time.perf_counter())  # the start's: it starts the compiler
        while len(rows) < count:
            keys, before = next_keys(generator), editor.tree
            for key in keys[:-1]:
                await press(app, key)
            await pilot.pause()
            since = time.perf_counter()
            await press(app, keys[-1])
            while editor.tree == before and time.perf_counter() - since < 0.05:
                await asyncio.sleep(0.001)
            if editor.tree == before:
                await press(app, "escape")
                continue
            rows.append(await figure_times(app, pilot, since))
    editor.close()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=200, help="that change the tree")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache, loopfleet.LocalCluster(workers=1), loopfleet.Client() as client:
        os.environ["XDG_CACHE_HOME"] = cache  # no kernel was verified before
        rows = asyncio.run(drive(client, given.keys, given.seed))
    for kind, goal in GOALS_MS.items():
        times = [row[kind] for row in rows if row[kind] is not None]
        p50, p95 = np.percentile(times, [50, 95])
        emit(f"{kind}_p50", p50, goal=goal, figures=len(times), without_figure=len(rows) - len(times))
        emit(f"{kind}_p95", p95, figures=len(times), without_figure=len(rows) - len(times))


if __name__ == "__main__":
    main()
