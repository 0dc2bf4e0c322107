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


def kind_and_sizes(benchmark):
    """("mm", [64, 48, 32]) of benchmark://mm-v0/mm64_48_32; of a convolution all eight sizes of its name."""
    kind, sizes = re.fullmatch(r"([a-z_]*?[a-z]+(?:1d)?)(\d[\d_]*)", benchmark.rsplit("/", 1)[-1]).groups()
    return kind, [int(size) for size in sizes.split("_") if size]


def program_of(np, benchmark):
    """(what numpy is asked for, or None where it has no such operation; random inputs; a function of them whose result
    has the program's shape). Without an operation, the function does the same with intermediate arrays."""
    kind, sizes = kind_and_sizes(benchmark)
    rng = np.random.default_rng(1)

    def arrays(*shapes):
        return [rng.random(shape, np.float32) for shape in shapes]

    if kind == "mm":
        m, n, k = sizes
        out = np.empty((m, n), np.float32)
        return "np.matmul", arrays((m, k), (k, n)), lambda a, b: np.matmul(a, b, out=out)
    if kind in ("positive_product", "positive_product_c"):  # an array of all products, which programs leave out
        m, n, k = sizes
        return None, arrays((m, k), (k, n)), lambda a, b: np.maximum(a[:, :, None] * b, 0).sum(1)
    if kind == "mmbias":
        m, n, k = sizes
        return ("np.maximum(a @ b + bias, floor)", arrays((m, k), (k, n), (n,), (m, n)),
                lambda a, b, bias, floor: np.maximum(a @ b + bias, floor))
    if kind == "twomm":
        m, n, k, p = sizes
        return "(a @ b) @ c", arrays((m, k), (k, n), (n, p)), lambda a, b, c: (a @ b) @ c
    if kind == "conv":
        batch, channels, height, width, out, _, rows, columns = sizes

        def convolve(x, w):
            windows = np.lib.stride_tricks.sliding_window_view(x, (rows, columns), axis=(2, 3))
            return np.moveaxis(np.tensordot(windows, w, axes=((1, 4, 5), (1, 2, 3))), -1, 1)

        return ("np.tensordot of sliding_window_view",
                arrays((batch, channels, height, width), (out, channels, rows, columns)), convolve)
    if kind == "conv1d":
        return "np.correlate", arrays(sizes[:1], sizes[1:]), lambda x, w: np.correlate(x, w, "valid")
    if kind == "chain":
        return "np.exp(x * y) + x", arrays(sizes, sizes), lambda x, y: np.exp(x * y) + x
    if kind == "reduce_add":
        return "x.sum(1)", arrays(sizes), lambda x: x.sum(1)
    if kind == "reduce_max":
        return "x.max(1)", arrays(sizes), lambda x: x.max(1)
    if kind == "shift":
        return "x - x.max(1)", arrays(sizes), lambda x: x - x.max(1, keepdims=True)
    raise ValueError(f"{benchmark} is of no kind that numpy_programs.py knows")


def operation_of(np, benchmark):
    """(what numpy is asked for, a function that does it) or None."""
    name, inputs, function = program_of(np, benchmark)
    return (name, lambda: function(*inputs)) if name else None


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
