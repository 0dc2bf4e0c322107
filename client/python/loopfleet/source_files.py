"""Source files as LLVM bitcode, by the compiler of this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from . import _core
from .bitcode import read_bitcode
from .errors import BenchmarkInitError, DeadlineExceeded

SOURCES = (".c", ".cc", ".cpp", ".cxx")
_NEWEST, _OLDEST = 19, 14  # whose bitcode LLVM 19, that workers have, reads; its own is preferred
_MESSAGE = 4000  # characters


def compile_to_bitcode(inputs: str | os.PathLike | Sequence[str | os.PathLike], copt: Sequence[str],
                       timeout: float) -> bytes:
    """What LlvmEnv.make_benchmark sends. The errors are those of its documentation."""
    files = [os.fspath(file) for file in ([inputs] if isinstance(inputs, (str, os.PathLike)) else inputs)]
    if not files:
        raise ValueError("no files: a program is made of one or more")
    if isinstance(copt, str):
        raise TypeError(f"copt is a list of arguments, such as {copt.split()}, not '{copt}'")
    for file in files:
        os.stat(file)
        if Path(file).suffix not in (*SOURCES, ".bc"):
            raise ValueError(f"{file} is of no kind that can be compiled; valid: {', '.join(SOURCES)}, .bc")
    deadline = time.monotonic() + timeout
    with tempfile.TemporaryDirectory(prefix="lf-b-") as folder:
        parts = []
        for number, file in enumerate(files):
            if Path(file).suffix == ".bc":
                read_bitcode(file)
                parts.append(file)
            else:
                parts.append(f"{folder}/{number}.bc")
                _run([_tool("clang", "clang-19"), *_core.clang_flags(), *copt, file, "-o", parts[-1]], deadline)
        if len(parts) == 1:
            return read_bitcode(parts[0])
        linked = f"{folder}/linked.bc"
        _run([_tool("llvm-link", "llvm-19"), *parts, "-o", linked], deadline)
        return read_bitcode(linked)


def _tool(name: str, package: str) -> str:
    for command in (*(f"{name}-{version}" for version in range(_NEWEST, _OLDEST - 1, -1)), name):
        if shutil.which(command) and (command != name or _OLDEST <= _version(command) <= _NEWEST):
            return command
    raise BenchmarkInitError(f"there is no {name} of version {_OLDEST} to {_NEWEST} on this machine; "
                             f"on Debian: apt-get install {package}")


def _version(command: str) -> int:
    said = subprocess.run([command, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60).stdout
    found = re.search(rb"version (\d+)", said)
    return int(found[1]) if found else 0


def _run(command: list[str], deadline: float) -> None:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=deadline - time.monotonic())
    except subprocess.TimeoutExpired:
        raise DeadlineExceeded(f"{command[0]} did not end in time") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise BenchmarkInitError(f"{command[0]} ended with {done.returncode}: {said[:_MESSAGE]}")
