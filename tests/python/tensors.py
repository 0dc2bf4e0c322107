"""What the tests of tensors share: numbers, a comparison with NumPy, a matrix product, a cache of their own."""

import os

import numpy as np
import pytest

import loopfleet.tensor as lt


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    lt.set_verify("once")
    yield
    os.environ.pop("XDG_CACHE_HOME")
    if before is not None:
        os.environ["XDG_CACHE_HOME"] = before


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def close(tensor, expected, tolerance=1e-5):
    values = tensor.numpy()
    assert values.shape == np.shape(expected) and values.dtype == np.float32
    np.testing.assert_allclose(values, expected, rtol=tolerance, atol=tolerance)


def product(a, b):
    s = lt.SymbolGenerator()
    return (a.to(s.m, s.k) * b.to(s.k, s.n)).sum(s.k)
