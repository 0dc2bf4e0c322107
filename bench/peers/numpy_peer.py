"""The numpy side of bench/cases/codegen: reads lines "CASE SIZE RUNS", runs the case RUNS times, and
answers with the nanoseconds of one run. The first answer is numpy's version.

  broadcast_nk  K   sum over k of max(A[m,k] * B[k,n], 0), M=33, N=48: broadcast, k in the middle
  broadcast_k   K   the same, broadcast with k innermost, from a transposed copy of B made beforehand
  add           N   np.add(a, b, out=c) of N float32
"""

import sys
import time

import numpy as np

M, N = 33, 48


def random(*shape):
    return np.random.default_rng(1).integers(-2, 3, size=shape).astype(np.float32)


def aligned(count, value):
    """A float32 array aligned to 64 bytes, as the kernels' buffers are."""
    raw = np.empty(count * 4 + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    array = raw[start : start + count * 4].view(np.float32)
    array[:] = value
    return array


def prepare(case, size):
    if case == "broadcast_nk":
        a, b = random(M, size), random(size, N)
        return lambda: np.maximum(a[:, :, None] * b[None, :, :], 0).sum(axis=1)
    if case == "broadcast_k":
        a, b = random(M, size), random(size, N)
        turned = np.ascontiguousarray(b.T)
        return lambda: np.maximum(a[:, None, :] * turned[None, :, :], 0).sum(axis=2)
    if case == "add":
        a, b, c = aligned(size, 1), aligned(size, 2), aligned(size, 0)
        return lambda: np.add(a, b, out=c)
    raise SystemExit(f"numpy_peer: unknown case '{case}'")


def main():
    print(np.__version__, flush=True)
    prepared = {}
    for line in sys.stdin:
        case, size, runs = line.split()
        work = prepared.get((case, size))
        if work is None:
            prepared.clear()  # one set of arrays at a time
            work = prepared[case, size] = prepare(case, int(size))
        start = time.perf_counter_ns()
        for _ in range(int(runs)):
            work()
        print((time.perf_counter_ns() - start) / int(runs), flush=True)


main()
