"""debian-v0: programs built from Debian's source packages, and what LLVM's own pipelines make of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loopfleet import LocalCluster

# Instructions of the program, after -O3 and after -Oz, as opt-19 and a count of lines in its output gave them.
COUNTS = {"gsm": (21_085, 8_861, 8_302), "gzip": (10_417, 9_958, 5_835), "zlib": (23_845, 13_378, 10_997)}
BUILD = Path(os.environ["LOOPFLEET_SOURCE"], "deploy/llvm/build_debian.py")


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    done = subprocess.run([sys.executable, "-B", BUILD, folder, "--only", *COUNTS], capture_output=True, text=True,
                          timeout=300)
    if "apt-get exited with" in done.stderr:
        pytest.skip(f"WITHOUT Debian's archive: {done.stderr.strip()[-300:]}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(folder / f"{name}.bc") for name in COUNTS]
    return folder


def test_counts_are_those_of_opt(programs):
    observe = ["IrInstructionCount", "IrInstructionCountO3", "IrInstructionCountOz"]
    with LocalCluster(llvm_programs=programs) as cluster, cluster.client() as client:
        outcomes = client.evaluate_many([{"benchmark": f"benchmark://debian-v0/{name}", "observe": observe}
                                         for name in COUNTS], timeout=300).outcomes
    assert all(outcome.ok for outcome in outcomes), outcomes
    found = {name: tuple(int(outcome.observed[each]) for each in observe) for name, outcome in zip(COUNTS, outcomes)}
    assert found == COUNTS


def test_what_is_there_is_not_built_again(programs):
    times = {name: (programs / f"{name}.bc").stat().st_mtime_ns for name in COUNTS}
    done = subprocess.run([sys.executable, "-B", BUILD, programs, "--only", *COUNTS], capture_output=True, text=True,
                          timeout=300)
    assert (done.returncode, done.stdout) == (0, "")
    assert times == {name: (programs / f"{name}.bc").stat().st_mtime_ns for name in COUNTS}
