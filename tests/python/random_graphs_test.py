"""Random graphs of tensor operations under random legal schedules, against NumPy in float64. LOOPFLEET_GRAPHS says how
many; LOOPFLEET_GRAPH_SEED where to begin, so that a failure can be run alone."""

import os

import numpy as np
import pytest

import loopfleet.tensor as lt
from random_graphs import Maker, walked

GRAPHS = int(os.environ.get("LOOPFLEET_GRAPHS", "1000"))
FIRST = int(os.environ.get("LOOPFLEET_GRAPH_SEED", "0"))


@pytest.mark.parametrize("threads", [1, 4])
def test_random_graphs_are_right(threads):
    count = GRAPHS if threads == 1 else GRAPHS // 10
    segments = guarded = parallel = 0
    lt.set_threads(threads)
    lt.set_verify("never")  # each result is compared here
    try:
        for seed in range(FIRST, FIRST + count):
            maker = Maker(seed)
            named = maker.graph()
            tensor = named.tensor
            if tensor.symbolic_shape != named.symbols:
                raise AssertionError(f"seed {seed}: dims {tensor.symbolic_shape}, not {named.symbols}")
            assert tensor.shape == list(named.values.shape), f"seed {seed}"
            trees = tensor.segments
            segments += len(trees) > 1
            guarded += any("outside" in tree.serialize() for tree in trees)
            if trees and seed % 3:
                parallel += walked(tensor, maker.random, threads)
            values = tensor.numpy()
            scale = 1e-4 * max(1, np.abs(named.values).max())
            np.testing.assert_allclose(values, named.values, rtol=1e-3, atol=scale, err_msg=f"seed {seed}")
    finally:
        lt.set_threads(1)
        lt.set_verify("once")
    if count >= 100:
        assert segments and guarded, "graphs of all sorts were among them"
        assert threads == 1 or parallel > count // 10
