#!/usr/bin/env python3
"""A seed has the same trace in every process, whatever ran before it and wherever memory is mapped;
different seeds have different traces."""

import subprocess
import sys


def hashes(program, first, last):
    run = subprocess.run([program, "--seeds", str(first), str(last), "--hashes"],
                         stdout=subprocess.PIPE, text=True, check=True)
    lines = run.stdout.splitlines()[:-1]
    return dict(line.split() for line in lines)


def main():
    program = sys.argv[1]
    whole = hashes(program, 1, 300)
    parts = {}
    for first in range(1, 301, 50):
        parts.update(hashes(program, first, first + 49))
    assert len(whole) == 300, len(whole)
    assert whole == parts, [seed for seed in whole if whole[seed] != parts.get(seed)]
    assert len(set(whole.values())) == 300, "two seeds have one trace"
    print("300 seeds, the same traces in 7 processes")


if __name__ == "__main__":
    main()
