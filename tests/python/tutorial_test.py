"""The commands of docs/TUTORIAL.md, in their order and in one shell, with less training. Installing is the business of
package_test.py."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import blocks_of
from learning_packages import learning_package

SOURCE = Path(os.environ["LOOPFLEET_SOURCE"])
STEPS = "train.py 12000"
PATIENT = """
loopfleet() {  # measures again while the host is too busy for a figure
  [[ " $* " == *" eval "* ]] || { command loopfleet "$@"; return; }
  local said code
  for _ in {1..10}; do
    code=0
    said=$(command loopfleet "$@" 2>&1) || code=$?
    [[ $said == *UNSTABLE_TIMING* ]] || break
  done
  printf '%s\\n' "$said"
  return $code
}
"""


def shape(line):
    """A line without what differs from run to run: numbers, their units, grades, and whether the host disturbed a figure."""
    return re.sub(r"grade [A-D]|, confirmed|, disturbed", "grade", re.sub(r"\d[\d.,]*( [num]?s\b)?", "0", " ".join(line.split())))


@pytest.fixture
def folder(tmp_path):
    """What the commands find in a repository where quickstart.sh was run."""
    (tmp_path / "client").symlink_to(SOURCE / "client")
    (tmp_path / "build/release").mkdir(parents=True)
    (tmp_path / "build/release/bin").symlink_to(os.environ["LOOPFLEET_BIN"])
    return tmp_path


def test_every_command_runs_and_says_what_the_page_shows(folder):
    learning_package("torch")
    learning_package("matplotlib")
    page = SOURCE / "docs/TUTORIAL.md"
    script = PATIENT + "\n".join(blocks_of(page, "sh"))
    assert script.count(STEPS) == 1
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # whose `python3` is this one
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script.replace(STEPS, "train.py 1600")], cwd=folder, text=True,
                          env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-8000:]
    said = {shape(line) for line in done.stdout.splitlines()}
    for shown in blocks_of(page, ""):
        # Where a block is cut short, what is before "..." was found by the search or in later training. The
        # processor and which grades there are depend on the host, the agent's actions on what it learned.
        lines = [line for line in shown.split("...\n")[-1].splitlines() if not re.match(r"actions:|on .* \(\w+\), LLVM|[A-D] +\d", line)]
        assert [line for line in lines if shape(line) not in said] == []
    assert (folder / "build/dqn.npz").exists() and (folder / "build/tutorial-data/data/train.parquet").exists()
