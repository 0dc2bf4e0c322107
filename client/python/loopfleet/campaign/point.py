"""The points of a campaign, which its specification alone determines, and their jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .._core import JobError, Walk
from ..actions import LOOPTOOL_ACTIONS, SIMPLE_ACTIONS
from ..jobs import make_job
from .spec import BadSpec, Spec

_MOST_DRAWS = 1000  # from one data set for one point


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
