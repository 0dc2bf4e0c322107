"""Client.profile, and the Python example of docs/PROFILE.md."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from documents import blocks_of
from processes import wait_until

import loopfleet
from loopfleet import JobError, Profile

DOCUMENT = Path(os.environ["LOOPFLEET_SOURCE"]) / "docs/PROFILE.md"
MM = "benchmark://mm-v0/mm64_64_64"
ACTIONS = ["down", "split_16"]


@pytest.fixture(scope="module")
def client():
    with loopfleet.LocalCluster(workers=1), loopfleet.Client() as client:
        yield client


def test_lines_have_a_share_and_their_text(client):
    profile = client.profile(MM, ACTIONS)
    assert profile.ok and profile.level == "lines", profile.message
    assert sum(line.share for line in profile.lines) == pytest.approx(1)
    assert all(line.low <= line.share <= line.high for line in profile.lines)
    assert profile.line(0).text == "for m in 64 : L0"
    assert profile.line(0).total > 0.5
    assert sum(line.samples for line in profile.lines) > 0
    fused = [line for line in profile.lines if line.fused_into is not None]
    assert [line.text for line in fused] == ["    %2[m, k, n] <- multiply(%0, %1)  (with %3)"]
    assert profile.line(0, "node") == profile.line(0)
    with pytest.raises(KeyError):
        profile.line(99)
    text = str(profile)
    assert "█" in text and text.splitlines()[-1].endswith("no figure")
    assert repr(profile) == f"<Profile by lines: {len(profile.lines)} lines>"


def test_of_a_job(client):
    job = loopfleet.job(MM, ACTIONS, precision=0.01, threads=1)
    roots = client.profile(job, level="roots")
    assert roots.ok, roots.message
    assert [(line.ref, line.part) for line in roots.lines if line.known] == [(0, "node"), (0, "outside")]
    assert roots.line(0).entries == 1 and roots.line(0).cycles > 0
    wait_until(lambda: client.profile(job, level="roots").outcome.source == "stored", "it is not run again")
    assert client.evaluate(MM, ACTIONS).observed is None


def test_loops(client):
    profile = client.profile("benchmark://mm-v0/mm256_192_512", level="loops")
    assert profile.ok, profile.message
    assert profile.line(0).share > 0.9
    known = [line for line in profile.lines if line.known and line.part == "node"]
    assert all(line.cycles / line.entries >= 4_000 or line.ref == 0 for line in known)


def test_async(client):
    async def work():
        async with loopfleet.AsyncClient(client.address) as one:
            return await one.profile(MM, ACTIONS, level="roots")
    profile = asyncio.run(work())
    assert isinstance(profile, Profile) and profile.ok, profile.message


def test_what_has_no_profile(client):
    failed = client.profile("benchmark://loop_tool-cuda-v0/1024")
    assert not failed.ok and failed.status == "UNSUPPORTED" and failed.lines == ()
    assert str(failed).startswith("UNSUPPORTED: field 'profile'")
    with pytest.raises(JobError, match="field 'cache' means nothing"):
        client.profile(MM, ACTIONS, cache="cold")
    # Of a job, what is about figures is left out.
    assert client.profile(loopfleet.job(MM, ACTIONS, cache="cold"), level="roots").ok
    with pytest.raises(JobError, match="nearest: lines"):
        client.profile(MM, ACTIONS, level="line")
    with pytest.raises(JobError, match="only loop schedules"):
        client.profile("probe://peaks-v0")
    with pytest.raises(TypeError):
        client.profile(loopfleet.job(MM), ["down"])


def test_an_older_coordinator_gives_a_figure(client):
    figure = client.evaluate(MM, ACTIONS)
    asked = loopfleet.job(MM, ACTIONS, profile="lines")
    with pytest.raises(loopfleet.LoopfleetError, match="upgrade it"):
        Profile.of(asked, figure)


def test_the_example():
    (block,) = blocks_of(DOCUMENT, "python")
    done = subprocess.run([sys.executable, "-c", block], env=os.environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "by roots: the clock is read between roots" in done.stdout
    assert "0 node for m in 64 : L0 " in done.stdout
