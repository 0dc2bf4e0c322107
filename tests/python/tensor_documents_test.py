"""The examples of docs/TENSORS.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import blocks_of

DOCUMENT = Path(os.environ["LOOPFLEET_SOURCE"]) / "docs/TENSORS.md"
BLOCKS = blocks_of(DOCUMENT, "python")


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_examples(number, tmp_path):
    """Each runs by itself and prints what its comments say, where these begin with a value."""
    block = BLOCKS[number]
    done = subprocess.run([sys.executable, "-c", block], env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    prints = [line for line in block.splitlines() if line.startswith("print(")]
    assert len(printed) == len(prints) > 0
    for line, said in zip(prints, printed):
        if promised := re.search(r"# ((?:\[[\d, ]*\] ?)+|[\d.]+)", line):
            assert said == promised[1].strip(), line
