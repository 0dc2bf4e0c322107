"""Campaigns: n points of a distribution of benchmarks and action walks, measured to a stated precision. An interrupted
campaign continues where it stopped and measures the same points as an uninterrupted one."""

from __future__ import annotations

import argparse
import math
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import IO, Any

from .. import _core
from .._core import JobError
from ..client import Client
from ..errors import CoordinatorUnavailable, DeadlineExceeded, LoopfleetError
from .log import failures, standing
from .remeasurement import remeasured
from .runner import Progress, run
from .spec import BadSpec, Spec, read_spec

_STALL_S = 10.0  # without an outcome, then what is waited for is said


def _print_codes(counts: Counter[str], file: IO[str] | None = None) -> None:
    advice = {name: text for _, name, _, text in _core.failure_codes()}
    for code, count in counts.most_common():
        print(f"  {count:,} {code}: {advice[code]}", file=file)


def waiting_for(client: Any) -> str:
    """What a campaign without new outcomes waits for, as far as the fleet says."""
    try:
        states = Counter(worker["state"] for worker in client.workers(timeout=2.0))
    except LoopfleetError:
        return "the coordinator does not answer"
    if not states:
        return "no worker is there"
    others = ", ".join(f"{count} {state}" for state, count in sorted(states.items()) if state != "ready")
    if not states["ready"]:
        return f"no worker is ready ({others})"
    return (f"{_core.counted(states['ready'], 'ready worker', 'ready workers')}{f' ({others})' if others else ''}; "
            "`loopfleet job explain BATCH.INDEX` tells why a job waits")


class Reporter:
    """Prints the progress from time to time, and what a campaign without new outcomes waits for."""

    def __init__(self, client: Client):
        self._client = client
        self._every_s = 1.0 if sys.stderr.isatty() else 30.0
        self._said_at = 0.0
        self._outcomes, self._moved_at = -1, 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.done + progress.again != self._outcomes:
            self._outcomes, self._moved_at = progress.done + progress.again, now
        elif now - self._moved_at >= _STALL_S:
            print(f"no outcome for {_STALL_S:g} s: {waiting_for(self._client)}", file=sys.stderr, flush=True)
            self._moved_at = now
        if now - self._said_at >= self._every_s:
            self._said_at = now
            print(progress, file=sys.stderr, flush=True)


def show_campaign(spec: Spec, folder: Path) -> int:
    done, failed = standing(spec, folder)
    print(f"{done:,} of {_core.counted(spec.points, 'point', 'points')}, {failed:,} failed")
    _print_rest(spec, folder, failed)
    return 0


def run_campaign(spec: Spec, folder: Path, address: str | None, timeout: float | None) -> int:
    until = math.inf if timeout is None else time.monotonic() + timeout
    interrupted: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, frame: interrupted.append(got))
    with Client(address, timeout=timeout) as client:
        progress = run(spec, folder, client, on_progress=Reporter(client),
                       stop=lambda: bool(interrupted) or time.monotonic() >= until)
    print(f"{folder}: {progress}")
    _print_rest(spec, folder, progress.failed)
    if interrupted:
        print("interrupted; the same command goes on where it was", file=sys.stderr)
        return 130
    if not progress.complete and time.monotonic() >= until:
        print(f"not done within {timeout:g} s; the same command goes on where it was", file=sys.stderr)
        return 75
    if progress.unanswered:
        print(f"{_core.counted(progress.unanswered.total(), 'point has', 'points have')} no answer; the same command asks for "
              "them again:", file=sys.stderr)
        _print_codes(progress.unanswered, sys.stderr)
        return 75
    return 0


def _print_rest(spec: Spec, folder: Path, failed: int) -> None:
    if failed:
        _print_codes(failures(folder))
    shown = remeasured(spec, folder)
    if shown is not None:
        print(f"measured again: {shown}")


def _refuse(why: object, status: int) -> int:
    print(f"loopfleet-campaign: {why}", file=sys.stderr)
    return status


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="loopfleet-campaign", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run", help="ask for all that has no answer yet")
    runner.add_argument("spec", help="a TOML file; docs/PYTHON.md lists its keys")
    runner.add_argument("--out", metavar="FOLDER", help="default: the specification's name beside it")
    runner.add_argument("--address", help="the coordinator's")
    runner.add_argument("--timeout", type=float, metavar="SECONDS", help="leave after this long (exit code 75)")
    shower = commands.add_parser("show", help="how far it is")
    shower.add_argument("spec")
    shower.add_argument("--out", metavar="FOLDER")
    given = parser.parse_args(arguments)
    try:
        spec = read_spec(given.spec)
    except BadSpec as error:  # which names the file
        return _refuse(error, 78)
    folder = Path(given.out or Path(given.spec).parent / spec.name)
    try:
        if given.command == "show":
            return show_campaign(spec, folder)
        return run_campaign(spec, folder, given.address, given.timeout)
    except DeadlineExceeded as error:
        return _refuse(error, 75)
    except BadSpec as error:
        return _refuse(f"{given.spec}: {error}", 78)
    except (LoopfleetError, JobError, OSError) as error:
        return _refuse(error, 69 if isinstance(error, CoordinatorUnavailable) else 1)


if __name__ == "__main__":
    sys.exit(main())
