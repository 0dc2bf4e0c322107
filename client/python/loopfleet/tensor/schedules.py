"""Schedules of tensors: their code, their speed on workers, tuning, and files of them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from .. import _core
from .._core import LoopTree, Outcome, Tensor, Walk
from ..schedule_file import read_rows, row_of, write_rows
from .backends import find_worker
from .errors import KernelError, ScheduleError

if TYPE_CHECKING:
    from ..client import Client

__all__ = ["Code", "Tuned", "benchmark", "load_schedules", "save_schedules", "tune"]

_figures: dict[str, float] = {}  # GFLOP/s by tree key, of trees that tune() kept
_FORMATS = ("c", "llvm-ir", "asm", "facts", "wasm", "ptx")


class Code(str):
    """The C text of a tensor's schedule. Called with a format, the code in that format."""

    _ir: str

    def __new__(cls, ir: str) -> Code:
        code = super().__new__(cls, _core.c_source_of(ir))
        code._ir = ir
        return code

    def __call__(self, format: str = "c", gpu_arch: str = "sm_80") -> str | bytes:
        """``format``: c, llvm-ir, asm or facts for this host's processor, wasm (bytes) for browsers, ptx for a GPU.
        KernelError: there is no such code."""
        if format not in _FORMATS:
            raise ValueError(f"code('{format}'): the format is one of {', '.join(_FORMATS)}")
        if format == "c":
            return str(self)
        command = [find_worker(), "emit", "--format", format]
        if format == "ptx":
            command += ["--gpu-arch", gpu_arch]
        job = json.dumps({"ir": self._ir, "actions": []})
        try:
            done = subprocess.run(command, input=job.encode(), capture_output=True)
        except OSError as error:
            raise KernelError(f"{command[0]}: {error.strerror}; put its folder into LOOPFLEET_BIN") from error
        if done.returncode != 0:
            raise KernelError(done.stderr.decode().strip())
        return done.stdout if format == "wasm" else done.stdout.decode()


@dataclass(frozen=True)
class Tuned:
    """What ``tune`` found. Figures are GFLOP/s on a worker; None: there is none."""

    before: float | None
    after: float | None
    evaluated: int
    history: list[tuple[float, float]] = field(default_factory=list)  # (seconds, best GFLOP/s)


# strategy(tree's IR text, history of (IR text, GFLOP/s or None)) -> IR texts or trees to try next; none: it is done
Strategy = Union[str, Callable[[str, list], Iterable[Any]]]


def _with_client(client: Client | None, use: Callable[[Client], Any]) -> Any:
    from ..local_cluster import LocalCluster

    if client is not None:
        return use(client)
    with LocalCluster() as cluster, cluster.client() as own:
        return use(own)


def benchmark(self: Tensor, client: Client | None = None, **fields: Any) -> Outcome:
    """Measures the schedule on a worker, with inputs of the worker's. ``fields`` are those of every job. Without a
    client a local cluster runs meanwhile."""
    return _with_client(client, lambda each: each.evaluate(ir=self.loop_tree.serialize(), actions=[], **fields))


def _ir_of(tree: Any) -> str:
    return tree if isinstance(tree, str) else tree.serialize()


def tune(self: Tensor, strategy: Strategy = "search", seconds: float = 10, threads: int = 1, client: Client | None = None,
         **fields: Any) -> Tuned:
    """Looks for a quicker schedule and keeps the best verified one.

    ``strategy``: "search" (the search of docs/SEARCH.md), any name of `loopfleet search --help`, or a callable, which is
    given the best tree's IR text and what was measured, [(IR text, GFLOP/s or None)], and gives trees to try next. None: a
    tree failed, or had no figure of grade C or better in three tries."""
    if seconds <= 0:
        raise ValueError(f"tune(seconds={seconds}): more than 0")
    fields = {**fields, "threads": threads}
    if callable(strategy):
        return _with_client(client, lambda each: _tune_by(self, strategy, seconds, each, fields))
    name = {"search": "auto"}.get(strategy, strategy)
    return _with_client(client, lambda each: _tune_by_search(self, name, seconds, each, fields))


def _tune_by_search(tensor: Tensor, strategy: str, seconds: float, client: Client, fields: dict[str, Any]) -> Tuned:
    from ..schedule_search import search

    start = tensor.loop_tree.serialize()
    found = search(ir=start, strategy=strategy, seconds=seconds, client=client, **fields)
    before = found.flop_count / found.untuned_ns if found.untuned_ns else None
    history = [(point.seconds, found.flop_count / point.best_ns) for point in found.curve if point.best_ns]
    after = found.gflops
    if found.actions is not None and after is not None and (before is None or after > before):
        walk = Walk(ir=start)
        for action in found.actions:
            walk.apply(action)
        tensor.loop_tree = LoopTree(walk.observe("ir"))
    else:
        after = before
    return _kept(tensor, Tuned(before, after, found.evaluations, history))


def _tune_by(tensor: Tensor, strategy: Callable, seconds: float, client: Client, fields: dict[str, Any]) -> Tuned:
    from ..schedule_search import conclusive_outcomes

    begun = time.monotonic()
    best = tensor.loop_tree.serialize()
    measured: list[tuple[str, float | None]] = []
    history: list[tuple[float, float]] = []

    def measure(trees: list[str]) -> list[float | None]:
        outcomes = conclusive_outcomes(client, [{"ir": ir, "actions": [], **fields} for ir in trees])
        figures = [outcome.gflops if outcome.ok and outcome.grade != "D" else None for outcome in outcomes]
        measured.extend(zip(trees, figures))
        return figures

    before = best_figure = measure([best])[0]
    while time.monotonic() - begun < seconds:
        trees = [_ir_of(tree) for tree in strategy(best, list(measured))]
        if not trees:
            break
        for ir in trees:
            if _core.program_key_of(ir) != tensor.program_key:
                raise ScheduleError("tune: the strategy gave a tree of another program")
        for ir, figure in zip(trees, measure(trees)):
            if figure is not None and (best_figure is None or figure > best_figure):
                best, best_figure = ir, figure
                history.append((time.monotonic() - begun, figure))
    tensor.loop_tree = LoopTree(best)
    return _kept(tensor, Tuned(before, best_figure, len(measured), history))


def _kept(tensor: Tensor, tuned: Tuned) -> Tuned:
    if tuned.after is not None:
        _figures[tensor.tree_key] = tuned.after
    return tuned


def save_schedules(path: str | os.PathLike) -> int:
    """Writes the schedules of all programs that tensors of this process had: one JSON object a line;
    ``gflops`` is that of tune(), or null. Gives their number."""
    trees = [LoopTree(ir) for _, ir in _core.schedules()]
    write_rows(path, [row_of(tree, _figures.get(tree.tree_key)) for tree in trees])
    return len(trees)


def load_schedules(path: str | os.PathLike) -> int:
    """Takes the schedules of a file, for tensors made before or later. ScheduleError: a line is none. Gives their number."""
    rows = read_rows(path)
    for row in rows:
        _core.set_schedule(row["ir"])
    return len(rows)
