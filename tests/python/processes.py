"""Checks whether a process is alive, and waits for conditions."""

import pathlib
import time


def alive(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def wait_until(condition, what, limit_s=60):
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def wait_for_the_end_of(pids):
    for pid in pids:
        wait_until(lambda pid=pid: not alive(pid), f"process {pid} has ended")
