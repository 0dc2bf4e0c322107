"""Observed values that are too large for an outcome: Client.observed, Client.get_blob and the environment."""

import asyncio
import hashlib
from pathlib import Path

import gymnasium as gym
import pytest

from bitcode_files import bitcode_of
from loopfleet import AsyncClient, Refused, _core

# Its text has more than an outcome holds, the graph and the bitcode do not.
SOURCE = "\n".join(f"int f{n}(int x) {{ int y = x * {n}; for (int i = 0; i < x; ++i) y ^= y * {n + 7} + i; return y; }}"
                   for n in range(700))


@pytest.fixture(scope="module")
def program(client):
    return client.add_program(bitcode_of(SOURCE))


@pytest.fixture(scope="module")
def outcome(client, program):
    job = {"benchmark": program, "passes": ["-mem2reg"], "observe": ["Ir", "Bitcode", "Programl", "ModuleHash"]}
    observed = client.evaluate_many([job]).outcomes[0]
    assert observed.ok, observed
    assert isinstance(observed.observed["Ir"], dict), "too small for this test"
    assert isinstance(observed.observed["Programl"], str), "too large for this test"
    return observed


def spoil(cluster, sha256):
    """The coordinator notices that it does not have this value any more."""
    (Path(f"{cluster.database}.uploads") / sha256).write_bytes(b"other bytes")


def test_all_values_in_full(client, outcome):
    values = client.observed(outcome)
    assert "define " in values["Ir"]
    assert hashlib.sha256(values["Ir"].encode()).hexdigest() == outcome.observed["Ir"]["sha256"]
    assert hashlib.sha256(values["Bitcode"]).hexdigest() == values["ModuleHash"]
    assert _core.programl_columns(values["Programl"])["texts"]
    assert values["changed"] == outcome.observed["changed"]

    async def other():
        async with AsyncClient(client.address) as asynchronous:
            blob = await asynchronous.get_blob(outcome.observed["Ir"]["sha256"])
            return blob, await asynchronous.observed(outcome)
    assert asyncio.run(other()) == (values["Ir"].encode(), values)


def test_what_is_not_kept_is_refused(client):
    with pytest.raises(Refused, match="fresh=True") as refused:
        client.get_blob("0" * 64)
    assert refused.value.code == "NOT_FOUND"


def test_the_environment_observes_a_lost_value_again(client, cluster, program, outcome):
    env = gym.make("loopfleet/LLVM-v0", benchmark=program, client=client)
    env.reset()
    env.step(env.action_space["-mem2reg"])
    text = env.unwrapped.observation["Ir"]
    assert text == client.observed(outcome)["Ir"]
    spoil(cluster, outcome.observed["Ir"]["sha256"])
    with pytest.raises(Refused):
        client.observed(outcome)
    assert env.unwrapped.observation["Ir"] == text
    assert client.observed(outcome)["Ir"] == text
