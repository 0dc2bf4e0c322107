#!/usr/bin/env python3
"""Tensors from Python, end to end, on one thread: the article's sum of positive products beside NumPy in the same run,
and what calls cost beside np.add of one element and torch. Prints the lines of bench/run.sh."""

import argparse
import functools
import json
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import numpy as np

import loopfleet.tensor as lt
import result_line

ROWS, COLUMNS = 33, 48
GOALS_F = {16: 18, 64: 40, 256: 50, 1024: 50}  # times NumPy
GOALS_REBUILT = {16: 8, 64: 30, 256: 45, 1024: 50}

emit = functools.partial(result_line.emit, "tensor")


def repeats_of(work):
    """How many calls last 2 ms."""
    count = 1
    while True:
        since = time.perf_counter()
        for _ in range(count):
            work()
        took = time.perf_counter() - since
        if took > 2e-3:
            return max(1, int(count * 2e-3 / took))
        count *= 2


def contest(works, rounds=25):
    """Microseconds of one call of each, the median over rounds in which each has its turn."""
    counts = {name: repeats_of(work) for name, work in works.items()}
    took = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            since = time.perf_counter()
            for _ in range(counts[name]):
                work()
            took[name].append((time.perf_counter() - since) / counts[name] * 1e6)
    return {name: float(np.median(times)) for name, times in took.items()}


m, n, k = lt.symbols("m n k")


def product(a, b):
    return (a.to(m, k) * b.to(k, n)).max(0).sum(k)


def article(depth, seconds):
    x = np.random.default_rng(0).standard_normal((ROWS, depth), dtype=np.float32)
    y = np.random.default_rng(1).standard_normal((depth, COLUMNS), dtype=np.float32)
    columns = np.ascontiguousarray(y.T)
    out = np.empty((ROWS, COLUMNS), np.float32)
    a, b = lt.Tensor(x), lt.Tensor(y)
    f = lt.compile(product(a, b), inputs=[a, b])
    np.testing.assert_allclose(f(x, y, out=out), np.maximum(x[:, :, None] * y[None], 0).sum(1), rtol=1e-4, atol=1e-3)
    works = {"f": lambda: f(x, y, out=out), "rebuilt": lambda: product(a, b).numpy(),
             "numpy, k in the middle": lambda: np.maximum(x[:, :, None] * y[None], 0).sum(1),
             "numpy, k innermost": lambda: np.maximum(x[:, None, :] * columns[None], 0).sum(2)}
    peer = "numpy broadcasting, the faster of two ways"

    def show(suffix, **details):
        us = contest(works)
        numpy_us = min(us["numpy, k in the middle"], us["numpy, k innermost"])
        for case, goals in (("f", GOALS_F), ("rebuilt", GOALS_REBUILT)):
            emit(f"{case}_{ROWS}x{COLUMNS}x{depth}{suffix}", 1e6 / us[case], "1/s", peer, 1e6 / numpy_us, us=us[case],
                 numpy_us=numpy_us, goal=goals[depth], **details)

    show("")
    if seconds > 0:
        tensor = product(a, b)
        tuned = tensor.tune(seconds=seconds)
        f = lt.compile(tensor, inputs=[a, b])
        # What the kernel takes alone, as a worker measured it: the most that a call from Python can reach.
        kernel_us = tensor.flops / tuned.after / 1e3
        show("_tuned", gflops_before=tuned.before, gflops_after=tuned.after, evaluated=tuned.evaluated,
             kernel_alone_us=kernel_us)


def gradient():
    """Of a layer's mean square error, with respect to its weights."""
    rows, inputs, outputs = 128, 64, 32
    numbers = np.random.default_rng(0)
    x, w, y = (numbers.standard_normal(shape, dtype=np.float32)
               for shape in ((rows, inputs), (inputs, outputs), (rows, outputs)))
    out = np.empty_like(w)
    for name, activation, values_of, slope_of in [
            ("relu", lt.nn.relu, lambda z: np.maximum(z, 0), lambda h: (h > 0).astype(np.float32)),
            ("tanh", lt.nn.tanh, np.tanh, lambda h: 1 - h * h)]:
        X, W, Y = lt.Tensor(x), lt.Tensor(w), lt.Tensor(y)
        error = activation((X.to(m, k) * W.to(k, n)).sum(k)) - Y.to(m, n)
        f = lt.compile(lt.grad((error * error).mean(), [W])[0], inputs=[X, W, Y])

        def by_hand():
            h = values_of(x @ w)
            return x.T @ (2 / h.size * (h - y) * slope_of(h))

        np.testing.assert_allclose(f(x, w, y, out=out), by_hand(), rtol=1e-3, atol=1e-5)
        us = contest({"f": lambda: f(x, w, y, out=out), "numpy": by_hand})
        emit(f"gradient_of_a_layer_{name}_{rows}x{inputs}x{outputs}", 1e6 / us["f"], "1/s", "numpy by hand",
             1e6 / us["numpy"], us=us["f"], numpy_us=us["numpy"])


def overheads():
    one = np.ones(1, np.float32)
    out = np.empty(1, np.float32)
    a, b = lt.Tensor(one), lt.Tensor(one)
    f = lt.compile(a.to(n) + b.to(n), inputs=[a, b])
    x, y = lt.rand(ROWS, 64), lt.rand(64, COLUMNS)
    computed = product(x, y)
    computed.resolve()
    works = {"f_of_one_element": lambda: f(one, one, out=out), "np.add_of_one_element": lambda: np.add(one, one, out=out),
             "resolve_of_5_new_nodes_k64": lambda: product(x, y).resolve(), "numpy_of_a_known_result": computed.numpy,
             "recomputed_k64": lambda: (computed.force_recompute(), computed.resolve())}
    try:
        import torch
        torch.set_num_threads(1)
        t = torch.ones(1)
        works["torch.add_of_one_element"] = lambda: torch.add(t, t, out=t)
    except ImportError:
        print(json.dumps({"bench": "tensor", "skipped": "torch"}), flush=True)
    us = contest(works)
    for case, value in us.items():
        emit(case, value * 1e3, "ns", "np.add of one element", us["np.add_of_one_element"] * 1e3)


def first_calls():
    took = []
    for size in range(101, 121):
        a, b = lt.rand(size, 64), lt.rand(64, size)
        since = time.perf_counter()
        product(a, b).resolve()
        took.append(time.perf_counter() - since)
    emit("first_call_of_a_new_tree", float(np.median(took)) * 1e3, "ms", worst=max(took) * 1e3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tune-seconds", type=float, default=10, help="of each tuning; 0: no tuning")
    options = parser.parse_args()
    overheads()
    first_calls()
    gradient()
    for depth in GOALS_F:
        article(depth, options.tune_seconds)
