"""Client.add_program: bitcode of one's own on a real cluster."""

import asyncio
import hashlib

import gymnasium as gym
import pytest

from bitcode_files import bitcode_of
from loopfleet import AsyncClient, Refused, _core

PIECE = _core.MAX_BLOB_PIECE_BYTES
MAGIC = b"BC\xc0\xde"


@pytest.fixture(scope="module")
def bitcode(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "square.bc"
    path.write_bytes(bitcode_of("int square(int x) { int y = x; return y * y; }"))
    return path


def test_a_program_that_was_added_is_a_benchmark(client, bitcode):
    uri = client.add_program(bitcode)
    assert uri == f"bitcode://sha256/{hashlib.sha256(bitcode.read_bytes()).hexdigest()}"
    assert client.add_program(bitcode.read_bytes()) == uri
    env = gym.make("loopfleet/LLVM-v0", benchmark=uri, reward_space="IrInstructionCount", client=client)
    env.reset()
    start = env.unwrapped.observation["IrInstructionCount"]
    _, reward, *_ = env.step(env.action_space["-mem2reg"])
    assert start - reward == 2

    async def again():
        async with AsyncClient(client.address) as other:
            return await other.add_program(bitcode)
    assert asyncio.run(again()) == uri


def test_what_is_no_program_is_not_sent(client, monkeypatch):
    monkeypatch.setattr(client, "_ask", lambda *_: pytest.fail("it was sent"))
    with pytest.raises(ValueError, match="no LLVM bitcode"):
        client.add_program(b"define void @f()")
    with pytest.raises(ValueError, match="at most 16777216"):
        client.add_program(MAGIC + bytes(16 << 20))


@pytest.mark.parametrize("drop", [0, Refused("INVALID_BENCHMARK", "other bytes")])
def test_a_program_that_was_dropped_is_sent_again_at_most_three_times(client, monkeypatch, drop):
    program = MAGIC + bytes(PIECE)
    answers, pieces = [], []

    def ask(encode, kind, timeout):
        pieces.append(encode(1))
        answer = answers.pop(0)
        if isinstance(answer, Refused):
            raise answer
        return answer

    monkeypatch.setattr(client, "_ask", ask)
    answers[:] = [PIECE, drop, PIECE, len(program)]
    assert client.add_program(program).endswith(hashlib.sha256(program).hexdigest())
    assert [len(piece) // PIECE for piece in pieces] == [0, 0, 1, 0]
    answers[:] = [PIECE, drop, PIECE, drop, PIECE, drop]
    with pytest.raises(Refused) as refused:
        client.add_program(program)
    assert refused.value.code == ("BUSY" if drop == 0 else "INVALID_BENCHMARK")
