"""What the tests of the Python package share: one real cluster for each file that asks for it."""

import os

import pytest

import loopfleet

for name in [name for name in os.environ if name in ("LOOPFLEET_ADDRESS", "LOOPFLEET_CONFIG", "LOOPFLEET_KEYS")]:
    del os.environ[name]


@pytest.fixture(scope="module")
def cluster():
    with loopfleet.LocalCluster(workers=1) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster):
    with cluster.client(timeout=120) as connected:
        yield connected
