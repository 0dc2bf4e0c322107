"""Campaigns: n points of a distribution of benchmarks and action walks, measured to a stated
precision. The specification alone determines the points, so an interrupted campaign continues
where it stopped and measures the same points as an uninterrupted one.
`python -m loopfleet.campaign run SPEC.toml`."""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import itertools
import json
import math
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from . import _core
from ._core import JobError, Outcome, Walk
from .actions import ACTION_SPACES, LOOPTOOL_ACTIONS, SIMPLE_ACTIONS
from .client import Client
from .errors import CoordinatorUnavailable, DeadlineExceeded, LoopfleetError
from .jobs import make_job
from .remeasurement import Answers, Key, Picks, Remeasurement
from .rows import NO_VERDICT
from .toml_file import read_toml

# Files in a campaign's folder.
_SEAL, _OUTCOMES, _REMEASURED = "campaign.json", "outcomes.jsonl", "remeasured.jsonl"
_NO_ANSWER = NO_VERDICT | {"STORAGE_CORRUPT"}  # codes of points that the next run asks for again
_WINDOW = 1000  # points in flight, which an interruption repeats
_STALL_S = 10.0  # without an outcome, then what is waited for is said
_MOST_DRAWS = 1000  # from one data set for one point
_KINDS = {"str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false",
          "list[str]": "a list of texts"}  # types of a specification's fields


class BadSpec(LoopfleetError):
    """A specification that no run can measure."""


@dataclass(frozen=True)
class Spec:
    """The fields of a specification file; all except ``name``, ``points`` and ``benchmarks`` are
    optional."""

    name: str
    points: int
    benchmarks: list[str]            # URIs, or names of data sets to draw from
    seed: int = 0
    actions: list[str] = field(default_factory=list)  # default: all of the benchmark's dialect
    min_length: int = 0              # actions in a walk
    max_length: int = 20
    rules: str = "structural"
    merge_all_first: bool = False
    device: str = ""                 # "cpu", "cuda", "any"; default: the benchmark's own
    labels: list[str] = field(default_factory=list)   # a worker must carry all of them
    threads: int = 1
    cache: str = "warm"
    precision: float = 0.0           # relative half-width of the interval; 0: the default
    budget_ms: float = 0.0
    cut_above_ns: int = 0
    paired_share: float = 0.0        # share of points measured `paired_times` times, on several workers
    paired_times: int = 2
    confirm_share: float = 0.0       # share of points measured again at the end, with as many winners

    def __post_init__(self) -> None:
        def need(good: bool, what: str) -> None:
            if not good:
                raise BadSpec(what)

        for each in fields(self):
            value = getattr(self, each.name)
            need(_is_of(each.type, value), f"{each.name} must be {_KINDS[each.type]}, not {value!r}")
        # The default folder is beside the specification.
        parts = Path(self.name).parts
        need(bool(parts) and ".." not in parts and not self.name.startswith("/"),
             f"name must be one that a folder can have, not {self.name!r}")
        need(0 <= self.seed < 1 << 63, f"seed must be from 0 to 2^63 - 1, not {self.seed}")
        need(self.points >= 1, f"points must be at least 1, not {self.points}")
        need(bool(self.benchmarks), "benchmarks must name at least one")
        need(0 <= self.min_length <= self.max_length <= 1000,
             f"lengths must be 0 <= min_length <= max_length <= 1000, not {self.min_length} and {self.max_length}")
        need(0 <= self.paired_share <= 1, f"paired_share must be from 0 to 1, not {self.paired_share}")
        need(0 <= self.confirm_share <= 1, f"confirm_share must be from 0 to 1, not {self.confirm_share}")
        need(self.paired_times >= 2, f"paired_times must be at least 2, not {self.paired_times}")

    @property
    def digest(self) -> str:
        """Of all fields but ``confirm_share``, which changes no point: it may be given later."""
        given = asdict(self)
        del given["confirm_share"]
        return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()


def _is_of(kind: str, value: Any) -> bool:
    if kind == "list[str]":
        return isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)
    if isinstance(value, bool):  # Python's bool is an int
        return kind == "bool"
    return isinstance(value, {"str": str, "int": int, "float": (int, float), "bool": bool}[kind])


def read_spec(path: str | Path) -> Spec:
    """The specification in a TOML file. BadSpec names the file."""
    try:
        given = read_toml(path)
    except LoopfleetError as error:
        raise BadSpec(str(error)) from error
    known = [each.name for each in fields(Spec)]
    for key in given:
        if key not in known:
            raise BadSpec(f"{path}: unknown key '{key}'{_core.nearest(key, known)}; valid: {', '.join(known)}")
    if isinstance(space := given.get("actions"), str):
        if space not in ACTION_SPACES:
            raise BadSpec(f"{path}: unknown action space '{space}'{_core.nearest(space, list(ACTION_SPACES))}; "
                                 f"valid: {', '.join(ACTION_SPACES)}, or a list of actions")
        given["actions"] = list(ACTION_SPACES[space])
    try:
        return Spec(**given)
    except BadSpec as error:
        raise BadSpec(f"{path}: {error}") from error
    except TypeError as error:
        raise BadSpec(f"{path}: {str(error).replace('Spec.__init__()', 'it')}") from error


@dataclass(frozen=True)
class Point:
    """One measurement; a paired point has several copies, a point measured again several
    rounds."""

    index: int
    copy: int
    benchmark: str
    actions: list[str]
    copies: int = 1
    round: int = 0  # 0: the first measurement

    @property
    def key(self) -> tuple[int, int, int]:
        return self.index, self.copy, self.round


def points(spec: Spec) -> Iterator[Point]:
    """All points; the same specification gives the same points everywhere."""
    for index in range(spec.points):
        yield from points_at(spec, index)


def points_at(spec: Spec, index: int) -> list[Point]:
    rng = np.random.Generator(np.random.Philox(key=[spec.seed, index]))
    chosen = spec.benchmarks[int(rng.integers(len(spec.benchmarks)))]
    if _is_data_set(chosen):
        chosen = _drawn(spec, chosen, rng)
    walk = _walk(spec, chosen)
    for _ in range(int(rng.integers(spec.min_length, spec.max_length + 1))):
        legal = np.flatnonzero(walk.mask())
        if not len(legal):
            break
        walk.step(int(legal[int(rng.integers(len(legal)))]))
    copies = spec.paired_times if rng.random() < spec.paired_share else 1
    return [Point(index, copy, chosen, walk.history, copies) for copy in range(copies)]


def _drawn(spec: Spec, data_set: str, rng: np.random.Generator) -> str:
    """A random benchmark of the data set. One that needs too much memory or work is drawn again."""
    refused = None
    for _ in range(_MOST_DRAWS):
        drawn = _core.random_benchmark([data_set], int(rng.integers(1 << 62)))
        refused = _refusal(spec, drawn)
        if refused is None or not refused.startswith("LIMIT_"):
            return drawn
    raise BadSpec(f"{data_set}: none of {_MOST_DRAWS} benchmarks can be measured; the last, "
                         f"{drawn}: {refused}")


def _refusal(spec: Spec, benchmark: str) -> str | None:
    """Why no walk on the benchmark can be measured."""
    refused = _core.failure_of(make_job(job_of(spec, Point(0, 0, benchmark, []))), replay=True)
    return refused and f"{refused[0]}: {refused[1]}"


def _is_data_set(benchmark: str) -> bool:
    return benchmark.removeprefix("benchmark://").rstrip("/").count("/") == 0


def _walk(spec: Spec, benchmark: str) -> Walk:
    dialect = Walk(benchmark=benchmark).dialect
    space = spec.actions or (SIMPLE_ACTIONS if dialect == "simple" else LOOPTOOL_ACTIONS)
    return Walk(benchmark=benchmark, action_space=space, rules=spec.rules, merge_all_first=spec.merge_all_first)


def check(spec: Spec) -> None:
    """Raises BadSpec if no point could be measured: an unknown benchmark, or an invalid
    rule or label."""
    for benchmark in spec.benchmarks:
        try:
            drawn = _drawn(spec, benchmark, np.random.default_rng(0)) if _is_data_set(benchmark) else benchmark
            _walk(spec, drawn)
            wrong = _refusal(spec, drawn)
        except (JobError, ValueError) as error:
            raise BadSpec(f"{benchmark}: {error}") from error
        if wrong is not None:
            raise BadSpec(f"{benchmark}: {wrong}")


def hosts_of(spec: Spec, workers: list[dict[str, Any]]) -> list[str]:
    """Names of the hosts with a worker that can run the campaign's jobs."""
    fitting = [worker for worker in workers
               if worker["state"] == "ready" and worker["device"] == _device(spec) and worker["max_threads"] >= spec.threads
               and set(spec.labels) <= set(worker["labels"])]
    return sorted({worker["host"] for worker in fitting})


def _device(spec: Spec) -> str:
    if spec.device in ("cpu", "cuda"):
        return spec.device
    return "cuda" if all("cuda" in benchmark for benchmark in spec.benchmarks) else "cpu"


def job_of(spec: Spec, point: Point, hosts: Sequence[str] = ()) -> dict[str, Any]:
    """The job of a point. ``hosts``: where copies of a point are measured, on different hosts if
    possible."""
    made: dict[str, Any] = {"benchmark": point.benchmark, "actions": point.actions, "rules": spec.rules,
                            "threads": spec.threads, "cache": spec.cache,
                            "tag": {"campaign": spec.name, "point": point.index, "copy": point.copy}}
    for name in ("merge_all_first", "device", "labels", "precision", "budget_ms", "cut_above_ns"):
        if getattr(spec, name):
            made[name] = getattr(spec, name)
    if point.copies > 1:
        # Copies of a point have different affinities, so that they spread over the workers.
        made["affinity"] = f"{spec.name[:100]}-{point.index}-{point.copy}"
        made["fresh"] = point.copy > 0
        made["tag"]["copies"] = point.copies
    if point.copies > 1 and len(hosts) > 1:
        made["labels"] = [*spec.labels, f"host={hosts[(point.index + point.copy) % len(hosts)]}"]
    if point.round > 0:
        made["fresh"] = True
        made.pop("cut_above_ns", None)
        made["tag"]["round"] = point.round
    return made


class Log:
    """A campaign's outcomes: one JSON line per point, in a file of the campaign's folder. Each
    point appears once; a line cut by an interruption is removed. Locked by one process at a
    time."""

    def __init__(self, folder: Path, spec: Spec, name: str = _OUTCOMES):
        folder.mkdir(parents=True, exist_ok=True)
        self._file = open(folder / name, "ab+")  # noqa: SIM115 - lives as long as the campaign
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise LoopfleetError(f"{folder}: this campaign is running already (`show` says how far it is)") from None
        try:
            sealed = _check_seal(folder, spec)
        except LoopfleetError:
            self._file.close()
            raise
        if not sealed:
            new = folder / f"{_SEAL}.new"
            new.write_text(json.dumps({"name": spec.name, "digest": spec.digest}), encoding="utf-8")
            new.rename(folder / _SEAL)
        self._file.seek(0)
        self.done, self.failed, whole = _answered(self._file)
        self._file.truncate(whole)
        self._file.seek(0, os.SEEK_END)

    def add(self, point: Point, outcome: Outcome) -> None:
        if point.key in self.done:
            return
        self.done.add(point.key)
        self.failed += not outcome.ok
        row = {"point": point.index, "copy": point.copy, **({"round": point.round} if point.round else {}),
               "outcome": outcome.to_dict()}
        self._file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def standing(spec: Spec, folder: str | Path) -> tuple[int, int]:
    """(points with an outcome, failed ones among them) of a campaign, which may be running. Reads
    only."""
    _check_seal(Path(folder), spec)
    try:
        with open(Path(folder) / _OUTCOMES, "rb") as file:
            done, failed, _ = _answered(file)
    except FileNotFoundError:
        return 0, 0
    return len(done), failed


def _check_seal(folder: Path, spec: Spec) -> bool:
    """Whether the folder belongs to this campaign; False: to none yet."""
    try:
        known = json.loads((folder / _SEAL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    if known["digest"] == spec.digest:
        return True
    answers = folder / _OUTCOMES
    if not answers.exists() or answers.stat().st_size == 0:
        return False  # a specification without outcomes does not own the folder
    raise LoopfleetError(f"{folder} belongs to another campaign ({known['name']}, or an older "
                         "specification): give another folder, or restore the specification")


def _answered(file: IO[bytes]) -> tuple[set[tuple[int, int, int]], int, int]:
    """(points with an outcome, how many of them failed, bytes up to the end of the last whole
    line)."""
    done: set[tuple[int, int, int]] = set()
    failed = whole = 0
    for line in file:
        if not line.endswith(b"\n"):
            break
        whole += len(line)
        row = json.loads(line)
        if _is_answer(row["outcome"]):
            done.add((row["point"], row["copy"], row.get("round", 0)))
            failed += row["outcome"]["status"] != "ok"
    return done, failed, whole


def _is_answer(outcome: dict[str, Any]) -> bool:
    """Logs of earlier versions have others, too."""
    return outcome["status"] == "ok" or outcome["error"]["code"] not in _NO_ANSWER


@dataclass
class Progress:
    done: int
    failed: int
    total: int          # at least; further copies of paired points are counted as they are drawn
    per_second: float   # in this run
    left_s: float | None
    again: int = 0      # new measurements of points that had one
    again_total: int | None = 0  # None: not known before all points are done
    unanswered: Counter[str] = field(default_factory=Counter)  # points of this run, by code of _NO_ANSWER

    @property
    def complete(self) -> bool:
        return self.done >= self.total and self.again == self.again_total

    def __str__(self) -> str:
        again = f", {self.again:,} of {self.again_total:,} measured again" if self.again_total else ""
        left = "" if self.left_s is None else f", {_duration(self.left_s)} left"
        return f"{self.done:,} of {_core.counted(self.total, 'point', 'points')}, {self.failed:,} failed{again}, {self.per_second:.1f}/s{left}"


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
            again = Log(folder, spec, _REMEASURED)
            rounds = _rounds(spec, folder)
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
            elif outcome.status in _NO_ANSWER:
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


def _picks(spec: Spec, folder: Path) -> Picks:
    return Picks.of(Answers(folder / _OUTCOMES), spec.points, spec.confirm_share, spec.seed)


def _rounds(spec: Spec, folder: Path) -> list[Point]:
    """The points to measure again, in order; all points must have an outcome."""
    walked: dict[Key, Point] = {}
    rounds = []
    for (index, copy), number in _picks(spec, folder).rounds():
        if (index, copy) not in walked:
            walked[index, copy] = points_at(spec, index)[copy]
        rounds.append(replace(walked[index, copy], round=number))
    return rounds


def remeasurement(spec: Spec, folder: str | Path) -> Remeasurement | None:
    """What the measurements of ``spec.confirm_share`` show; None: there are none yet. Reads
    only."""
    folder = Path(folder)
    _check_seal(folder, spec)
    if not spec.confirm_share or not (folder / _REMEASURED).exists():
        return None
    return Remeasurement.of(_picks(spec, folder), Answers(folder / _OUTCOMES), Answers(folder / _REMEASURED))


def outcomes(folder: str | Path) -> Iterator[dict[str, Any]]:
    """The outcomes in the order of the points: {"point", "copy", "outcome"}."""
    with open(Path(folder) / _OUTCOMES, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.endswith("\n")]
    yield from sorted((row for row in rows if _is_answer(row["outcome"])), key=lambda row: (row["point"], row["copy"]))


def failures(folder: str | Path) -> Counter[str]:
    """How many points failed with each code."""
    counts: Counter[str] = Counter()
    with open(Path(folder) / _OUTCOMES, encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n") and '"status":"failed"' in line:
                counts[json.loads(line)["outcome"]["error"]["code"]] += 1
    return Counter({code: count for code, count in counts.items() if code not in _NO_ANSWER})


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
    return (f"{_core.counted(states['ready'], 'ready worker', 'ready workers')}{f' ({others})' if others else ''}; `loopfleet job explain BATCH.INDEX` tells "
            "why a job waits")


def _duration(seconds: float) -> str:
    minutes, whole = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {whole:02} s"


def _print_remeasurement(spec: Spec, folder: Path) -> None:
    shown = remeasurement(spec, folder)
    if shown is not None:
        print(f"measured again: {shown}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="loopfleet-campaign", description=__doc__.split("\n\n")[0])
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
    until = math.inf if getattr(given, "timeout", None) is None else time.monotonic() + given.timeout
    interrupted: list[int] = []
    try:
        spec = read_spec(given.spec)
    except BadSpec as error:
        print(f"loopfleet-campaign: {error}", file=sys.stderr)
        return 78
    try:
        folder = Path(given.out or Path(given.spec).parent / spec.name)
        if given.command == "show":
            done, failed = standing(spec, folder)
            print(f"{done:,} of {_core.counted(spec.points, 'point', 'points')}, {failed:,} failed")
            if failed:
                _print_codes(failures(folder))
            _print_remeasurement(spec, folder)
            return 0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda got, frame: interrupted.append(got))
        last_said = [0.0]
        moved = [(-1, 0.0)]  # outcomes so far, and since when

        def say(progress: Progress) -> None:
            now = time.monotonic()
            got = progress.done + progress.again
            if got != moved[0][0]:
                moved[0] = (got, now)
            elif now - moved[0][1] >= _STALL_S:
                print(f"no outcome for {_STALL_S:g} s: {waiting_for(client)}", file=sys.stderr, flush=True)
                moved[0] = (got, now)
            if now - last_said[0] >= (1.0 if sys.stderr.isatty() else 30.0):
                last_said[0] = now
                print(progress, file=sys.stderr, flush=True)

        with Client(given.address, timeout=given.timeout) as client:
            progress = run(spec, folder, client, on_progress=say,
                           stop=lambda: bool(interrupted) or time.monotonic() >= until)
    except DeadlineExceeded as error:
        print(f"loopfleet-campaign: {error}", file=sys.stderr)
        return 75
    except BadSpec as error:
        print(f"loopfleet-campaign: {given.spec}: {error}", file=sys.stderr)
        return 78
    except (LoopfleetError, JobError, OSError) as error:
        print(f"loopfleet-campaign: {error}", file=sys.stderr)
        return 69 if isinstance(error, CoordinatorUnavailable) else 1
    print(f"{folder}: {progress}")
    if progress.failed:
        _print_codes(failures(folder))
    _print_remeasurement(spec, folder)
    if interrupted:
        print("interrupted; the same command goes on where it was", file=sys.stderr)
        return 130
    if not progress.complete and time.monotonic() >= until:
        print(f"not done within {given.timeout:g} s; the same command goes on where it was", file=sys.stderr)
        return 75
    if progress.unanswered:
        print(f"{_core.counted(progress.unanswered.total(), 'point has', 'points have')} no answer; the same command asks for "
              "them again:", file=sys.stderr)
        _print_codes(progress.unanswered, sys.stderr)
        return 75
    return 0


if __name__ == "__main__":
    sys.exit(main())
