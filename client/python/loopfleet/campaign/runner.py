"""Measures the points of a campaign that have no outcome yet."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import _core
from ..client import Client
from ..errors import DeadlineExceeded
from .log import NO_ANSWER, REMEASURED, Log
from .point import Point, check, hosts_of, job_of, points_at
from .remeasurement import points_again
from .spec import Spec

_WINDOW = 1000  # points in flight, which an interruption repeats


@dataclass
class Progress:
    done: int
    failed: int
    total: int          # at least; further copies of paired points are counted as they are drawn
    per_second: float   # in this run
    left_s: float | None
    again: int = 0      # new measurements of points that had one
    again_total: int | None = 0  # None: not known before all points are done
    unanswered: Counter[str] = field(default_factory=Counter)  # points of this run, by code of NO_ANSWER

    @property
    def complete(self) -> bool:
        return self.done >= self.total and self.again == self.again_total

    def __str__(self) -> str:
        again = f", {self.again:,} of {self.again_total:,} measured again" if self.again_total else ""
        left = "" if self.left_s is None else f", {_duration(self.left_s)} left"
        total = _core.counted(self.total, "point", "points")
        return f"{self.done:,} of {total}, {self.failed:,} failed{again}, {self.per_second:.1f}/s{left}"


def _duration(seconds: float) -> str:
    minutes, whole = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {whole:02} s"


def run(spec: Spec, folder: str | Path, client: Client, *, on_progress: Any = None, stop: Any = None) -> Progress:
    """Measures every point that has no outcome in ``folder``, and then again those of
    ``spec.confirm_share``. If ``stop()`` returns true it ends early; run it again to continue.

    A job that fails with a retryable code (a busy host) is tried up to three times. Points that no
    worker could run, or whose jobs were cancelled, stay without an outcome; run it again for them.
    """
    check(spec)  # before the folder is claimed
    folder = Path(folder)
    log = Log(folder, spec)
    again: Log | None = None
    since, begun = time.monotonic(), len(log.done)
    total = spec.points + sum(copy > 0 for _, copy, _ in log.done)
    unanswered: Counter[str] = Counter()
    again_total = None if spec.confirm_share else 0

    def progress() -> Progress:
        repeated = len(again.done) if again else 0
        rate = (len(log.done) + repeated - begun) / max(time.monotonic() - since, 1e-9)
        due = total - len(log.done) + (again_total or 0) - repeated
        return Progress(len(log.done), log.failed, total, rate, due / rate if rate > 0 and due > 0 else None,
                        repeated, again_total, unanswered)

    def drawn() -> Iterator[Point]:
        nonlocal total
        for point in _unanswered(spec, log.done):
            total += point.copy > 0
            yield point

    def measure(wanted: Iterator[Point], into: Log) -> bool:
        hosts = hosts_of(spec, client.workers()) if spec.paired_share else []
        say = None if on_progress is None else lambda: on_progress(progress())
        return _measure(wanted, into, client, lambda point: job_of(spec, point, hosts), say, stop, unanswered)

    try:
        if measure(drawn(), log) and not unanswered and spec.confirm_share:
            again = Log(folder, spec, REMEASURED)
            rounds = points_again(spec, folder)
            again.done &= {point.key for point in rounds}  # the share may have been larger
            begun, again_total = begun + len(again.done), len(rounds)
            measure((point for point in rounds if point.key not in again.done), again)
    finally:
        log.close()
        if again is not None:
            again.close()
    return progress()


def _measure(wanted: Iterator[Point], log: Log, client: Client, make: Callable[[Point], dict[str, Any]],
             on_arrival: Callable[[], None] | None, stop: Callable[[], bool] | None,
             unanswered: Counter[str]) -> bool:
    """Logs the outcome of every wanted point, or counts it as unanswered. False: stopped before."""
    fresh: list[Point] = []  # not sent yet, because one message carries many
    on_their_way: dict[int, tuple[Point, int]] = {}  # ticket -> (point, retries left)
    while not (stop and stop()):
        fresh += itertools.islice(wanted, _WINDOW - len(on_their_way) - len(fresh))
        exhausted = len(on_their_way) + len(fresh) < _WINDOW
        if len(fresh) >= _WINDOW // 4 or (fresh and (exhausted or not on_their_way)):
            tickets = client.send(make(point) for point in fresh)
            on_their_way.update({ticket: (point, 2) for ticket, point in zip(tickets, fresh)})
            fresh = []
        if not on_their_way:
            return True
        try:
            arrived = client.recv(1, timeout=0.5)
        except DeadlineExceeded:
            arrived = []
        for ticket, outcome in arrived:
            point, turns = on_their_way.pop(ticket)
            if not outcome.ok and outcome.retryable and turns:
                (ticket,) = client.send([make(point)])
                on_their_way[ticket] = (point, turns - 1)
            elif outcome.status in NO_ANSWER:
                unanswered[outcome.status] += 1
            else:
                log.add(point, outcome)
        if on_arrival is not None:
            on_arrival()
    return False


def _unanswered(spec: Spec, done: set[tuple[int, int, int]]) -> Iterator[Point]:
    for index in range(spec.points):
        if spec.paired_share == 0 and (index, 0, 0) in done:
            continue  # skips the walk
        yield from (point for point in points_at(spec, index) if point.key not in done)
