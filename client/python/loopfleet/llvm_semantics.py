"""Do passes keep what a program does? Runs a program before and after them, and compares its output.
`loopfleet llvm check` is main().

For programs that take no input and print a checksum: those of csmith-v0 and small-v0. The fleet runs
the passes; this machine compiles both bitcodes without optimisation and runs them, so it needs
clang-19. The program runs with limits and with a filter of system calls that leaves it its standard
output (_confined_start.c).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from . import _core
from .client import Client
from .errors import CoordinatorUnavailable, DeadlineExceeded, LoopfleetError
from .observed_blob import in_full_or_again

CHECKABLE = ("generator://csmith-v0/", "benchmark://small-v0/")
# What they add needs a runtime that the program is not linked with.
NEEDS_RUNTIME = frozenset(("-insert-gcov-profiling", "-sancov", "-ee-instrument", "-post-inline-ee-instrument",
                           "-rewrite-statepoints-for-gc"))
FIRST_SECONDS = 5  # of processor time for the program as it is; passes may make it this many times slower:
SLOWER = 4
_COMPILE_SECONDS = 120
# Of a program that makes another system call, writes too much, or could not be confined.
_BY_LIMITS = (-signal.SIGSYS, -signal.SIGXFSZ, 125)
_NOT_CHECKABLE, _UNREACHABLE, _TIMED_OUT = 65, 69, 75  # exit codes
_MEMORY = 1 << 30
_OUTPUT = 1 << 20


class NotCheckable(Exception):
    """There is nothing to compare; the text says why."""


@dataclass(frozen=True)
class Output:
    """What a program did: its exit status (minus a signal's number) and its standard output."""

    status: int
    text: bytes
    in_time: bool = True

    def __str__(self) -> str:
        if not self.in_time:
            return "did not end in time"
        return f"status {self.status}, output {self.text[-80:].decode(errors='replace').strip()!r}"


@dataclass(frozen=True)
class SemanticsResult:
    """``verdict`` is "equal", "differs" or "not checkable". ``shortest``: if the outputs differ, a part of the
    passes after which they still do, and from which no single pass can be left out."""

    verdict: str
    reason: str = ""
    before: Output | None = None
    after: Output | None = None
    shortest: tuple[str, ...] = ()


def check_semantics(client: Any, benchmark: str, passes: Sequence[str], *, timeout: float = 300.0) -> SemanticsResult:
    """Compares ``benchmark`` before and after ``passes`` (flags or raw texts). ``timeout``: seconds for each answer of
    the fleet. RuntimeError: a pass failed, the program cannot be had, or clang-19 is missing or fails."""
    passes = list(passes)
    if found := NEEDS_RUNTIME.intersection(passes):
        return SemanticsResult("not checkable", f"{min(found)} needs a runtime that the program is not linked with")

    def output_after(some: Sequence[str], seconds: float) -> Output:
        return run_bitcode(bitcode_after(client, benchmark, some, timeout), seconds)

    def is_other(some: Sequence[str]) -> bool:
        # Part of the passes may crash, or leave what clang rejects: that is not the difference which is looked for.
        try:
            return output_after(some, patience) != before
        except (NotCheckable, RuntimeError):
            return False

    try:
        before = output_after([], FIRST_SECONDS)
        if not before.in_time:
            raise NotCheckable(f"the program does not end in {FIRST_SECONDS} s of processor time")
        if before.status in _BY_LIMITS:
            raise NotCheckable(f"the program needs more than it may have here: {before}")
        patience = FIRST_SECONDS * SLOWER
        after = output_after(passes, patience)
        if after == before:
            return SemanticsResult("equal", before=before, after=after)
        shortest = shortest_failing(passes, is_other)
    except NotCheckable as error:
        return SemanticsResult("not checkable", str(error))
    return SemanticsResult("differs", f"before: {before}; after: {after}", before, after, tuple(shortest))


def shortest_failing(passes: Sequence[str], fails: Callable[[list[str]], bool]) -> list[str]:
    """A part of ``passes``, in their order, that still fails and that does not without any one of its passes.
    ``fails(passes)`` has to be true. A bisection finds where the failure begins; then ever smaller parts
    before it are left out."""
    good, bad = 0, len(passes)  # the first `good` do not fail, the first `bad` do
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if fails(list(passes[:middle])) else (middle, bad)
    kept = list(passes[:bad])
    size = max(len(kept) // 2, 1)
    while True:
        left_out = False
        at = 0
        while at < len(kept):
            shorter = kept[:at] + kept[at + size:]
            if shorter and fails(shorter):
                kept, left_out = shorter, True
            else:
                at += size
        if size > 1:
            size //= 2
        elif not left_out:
            return kept


def run_bitcode(bitcode: bytes, seconds: float) -> Output:
    """Compiles without optimisation, and runs. NotCheckable: it cannot be compiled and linked."""
    with tempfile.TemporaryDirectory(prefix="lf-s-") as folder:
        source, program = Path(folder, "in.bc"), Path(folder, "program")
        source.write_bytes(bitcode)
        try:
            compiled = subprocess.run(["clang-19", "-O0", "-w", str(source), str(_confined_start()), "-lm", "-o",
                                       str(program)], capture_output=True, timeout=_COMPILE_SECONDS)
        except FileNotFoundError:
            raise RuntimeError("clang-19 is not installed: it compiles the programs whose output is compared") from None
        except subprocess.TimeoutExpired:
            raise NotCheckable(f"clang-19 takes longer than {_COMPILE_SECONDS} s") from None
        if compiled.returncode != 0:
            raise NotCheckable(f"clang-19: {compiled.stderr[-300:].decode(errors='replace').strip()}")
        return _run(program, seconds)


def _run(program: Path, seconds: float) -> Output:
    whole = max(int(seconds), 1)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (_OUTPUT, _OUTPUT))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([str(program)], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL,
                                   env={}, cwd="/", preexec_fn=limit)
        try:
            status = process.wait(timeout=10 * whole)  # of a busy machine
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            status = -signal.SIGXCPU
        output.seek(0)
        return Output(status, output.read(), in_time=status not in (-signal.SIGXCPU, -signal.SIGKILL))


def bitcode_after(client: Any, benchmark: str, passes: Sequence[str], timeout: float) -> bytes:
    def observe(fresh: bool = False) -> Any:
        job = {"benchmark": benchmark, "passes": list(passes), "observe": ["Bitcode"], "fresh": fresh}
        outcome = client.evaluate_many([job], timeout=timeout).outcomes[0]
        if outcome.status == "UNSUPPORTED":
            raise NotCheckable(outcome.message)
        if not outcome.ok:
            raise RuntimeError(f"{outcome.status}: {outcome.message}")
        return outcome.observed["Bitcode"]

    return in_full_or_again("Bitcode", observe(), lambda sha256: client.get_blob(sha256, timeout=timeout),
                            lambda: observe(fresh=True))


@lru_cache(maxsize=1)
def _start_folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="lf-s-")


@lru_cache(maxsize=1)
def _confined_start() -> Path:
    """The object file that confines a program before its main()."""
    folder = Path(_start_folder().name)
    source = folder / "confined_start.c"
    source.write_bytes(Path(__file__).with_name("_confined_start.c").read_bytes())
    made = folder / "confined_start.o"
    done = subprocess.run(["clang-19", "-O1", "-c", str(source), "-o", str(made)], capture_output=True, text=True,
                          timeout=_COMPILE_SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"clang-19: {done.stderr[-300:].strip()}")
    return made


def _plain(result: SemanticsResult) -> str:
    text = f"{result.verdict}: {result.reason}" if result.reason else result.verdict
    return f"{text}\nthe shortest such passes: {','.join(result.shortest)}" if result.shortest else text


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: equal; 1: the program does something else, or could not be had; 65: not checkable; 69: no
    coordinator answers; 75: --timeout passed."""
    parser = argparse.ArgumentParser(prog="loopfleet llvm check", description=__doc__.split("\n\n")[0])
    parser.add_argument("benchmark", help="a program's URI")
    parser.add_argument("--passes", metavar="A,B,C", default="", help="flags of passes, or raw texts")
    parser.add_argument("--address", metavar="ENDPOINT", help="the coordinator's")
    parser.add_argument("--keys", metavar="DIR", help="directory with this client's key and coordinator.key")
    parser.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS",
                        help="for each answer of the fleet (default 300)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    passes = [name if name.startswith("-") or "(" in name else f"-{name}" for name in given.passes.split(",") if name]
    try:
        with Client(given.address, keys=given.keys, timeout=given.timeout,
                    program=f"loopfleet-llvm-check {_core.__version__}") as client:
            result = check_semantics(client, given.benchmark, passes, timeout=given.timeout)
    except (LoopfleetError, RuntimeError) as error:
        print(f"loopfleet llvm check: {error}", file=sys.stderr)
        return (_TIMED_OUT if isinstance(error, DeadlineExceeded)
                else _UNREACHABLE if isinstance(error, CoordinatorUnavailable) else 1)
    print(json.dumps(dataclasses.asdict(result), default=lambda text: text.decode(errors="replace")) if given.json
          else _plain(result))
    return {"equal": 0, "differs": 1}.get(result.verdict, _NOT_CHECKABLE)
