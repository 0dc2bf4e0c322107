#!/usr/bin/env python3
"""How long numpy takes for the programs of loopfleet's data sets, where it has the operation: prints
{"benchmark", "peer", "elapsed_ns"} for each, elapsed_ns null where it has none. Products go to the BLAS that numpy was
built with, on --threads threads.

    numpy_programs.py [--threads 1] [--seconds 0.5] benchmark://mm-v0/mm64_64_64 ...
"""

import argparse
import json
import os
import re
import time


def blas_of(np):
    """Name and version of numpy's BLAS."""
    facts = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{facts['name']} {facts.get('version', '')}".strip()


def operation_of(np, benchmark):
    """(what numpy is asked for, a function that does it) or None."""
    member = benchmark.rsplit("/", 1)[-1]
    kind, sizes = re.fullmatch(r"([a-z_]*?[a-z]+(?:1d)?)(\d[\d_]*)", member).groups()
    sizes = [int(size) for size in sizes.split("_") if size]
    rng = np.random.default_rng(1)

    def array(*shape):
        return rng.random(shape, np.float32)

    if kind == "mm":
        m, n, k = sizes
        a, b, c = array(m, k), array(k, n), np.empty((m, n), np.float32)
        return "np.matmul", lambda: np.matmul(a, b, out=c)
    if kind == "mmbias":
        m, n, k = sizes
        a, b, bias, floor = array(m, k), array(k, n), array(n), array(m, n)
        return "np.maximum(a @ b + bias, floor)", lambda: np.maximum(a @ b + bias, floor)
    if kind == "twomm":
        m, n, k, p = sizes
        a, b, c = array(m, k), array(k, n), array(n, p)
        return "(a @ b) @ c", lambda: (a @ b) @ c
    if kind == "conv":
        batch, channels, height, width, out, _, rows, columns = sizes
        x, w = array(batch, channels, height, width), array(out, channels, rows, columns)

        def convolve():
            windows = np.lib.stride_tricks.sliding_window_view(x, (rows, columns), axis=(2, 3))
            return np.tensordot(windows, w, axes=((1, 4, 5), (1, 2, 3)))

        return "np.tensordot of sliding_window_view", convolve
    if kind == "conv1d":
        x, w = array(sizes[0]), array(sizes[1])
        return "np.correlate", lambda: np.correlate(x, w, "valid")
    if kind == "chain":
        x, y = array(*sizes), array(*sizes)
        return "np.exp(x * y) + x", lambda: np.exp(x * y) + x
    if kind == "reduce_add":
        x = array(*sizes)
        return "x.sum(1)", lambda: x.sum(1)
    if kind == "reduce_max":
        x = array(*sizes)
        return "x.max(1)", lambda: x.max(1)
    if kind == "shift":
        x = array(*sizes)
        return "x - x.max(1)", lambda: x - x.max(1, keepdims=True)
    return None  # such as positive_product: a product in between that no operation of numpy leaves out


def median_ns(work, seconds):
    """Of one call, over batches of at least 1 ms."""
    calls, took = 1, 0
    while took < 1_000_000:
        calls *= 2
        since = time.perf_counter_ns()
        for _ in range(calls):
            work()
        took = time.perf_counter_ns() - since
    samples, until = [], time.perf_counter() + seconds
    while time.perf_counter() < until or len(samples) < 5:
        since = time.perf_counter_ns()
        for _ in range(calls):
            work()
        samples.append((time.perf_counter_ns() - since) / calls)
    return sorted(samples)[len(samples) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmarks", nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each")
    given = parser.parse_args()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(given.threads)  # read when numpy is imported
    import numpy as np

    for benchmark in given.benchmarks:
        found = operation_of(np, benchmark)
        what = f"numpy {np.__version__}, {blas_of(np)}" + (f": {found[0]}" if found else "")
        elapsed_ns = median_ns(found[1], given.seconds) if found else None
        print(json.dumps({"benchmark": benchmark, "peer": what, "elapsed_ns": elapsed_ns}), flush=True)


if __name__ == "__main__":
    main()
