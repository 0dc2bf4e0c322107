"""The log of a campaign's outcomes, in its folder, and who reads it."""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from .._core import Outcome
from ..errors import LoopfleetError
from ..rows import NO_VERDICT
from .point import Point
from .spec import Spec

# Files in a campaign's folder.
_SEAL, OUTCOMES, REMEASURED = "campaign.json", "outcomes.jsonl", "remeasured.jsonl"
NO_ANSWER = NO_VERDICT | {"STORAGE_CORRUPT"}  # codes of points that the next run asks for again


class Log:
    """A campaign's outcomes: one JSON line per point, in a file of the campaign's folder. Each
    point appears once; a line cut by an interruption is removed. Locked by one process at a
    time."""

    def __init__(self, folder: Path, spec: Spec, name: str = OUTCOMES):
        folder.mkdir(parents=True, exist_ok=True)
        self._file = open(folder / name, "ab+")  # noqa: SIM115 - lives as long as the campaign
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise LoopfleetError(f"{folder}: this campaign is running already (`show` says how far it is)") from None
        try:
            sealed = check_seal(folder, spec)
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
    check_seal(Path(folder), spec)
    try:
        with open(Path(folder) / OUTCOMES, "rb") as file:
            done, failed, _ = _answered(file)
    except FileNotFoundError:
        return 0, 0
    return len(done), failed


def check_seal(folder: Path, spec: Spec) -> bool:
    """Whether the folder belongs to this campaign; False: to none yet."""
    try:
        known = json.loads((folder / _SEAL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    if known["digest"] == spec.digest:
        return True
    answers = folder / OUTCOMES
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
    return outcome["status"] == "ok" or outcome["error"]["code"] not in NO_ANSWER


def outcomes(folder: str | Path) -> Iterator[dict[str, Any]]:
    """The outcomes in the order of the points: {"point", "copy", "outcome"}."""
    with open(Path(folder) / OUTCOMES, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.endswith("\n")]
    yield from sorted((row for row in rows if _is_answer(row["outcome"])), key=lambda row: (row["point"], row["copy"]))


def failures(folder: str | Path) -> Counter[str]:
    """How many points failed with each code."""
    counts: Counter[str] = Counter()
    with open(Path(folder) / OUTCOMES, encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n") and '"status":"failed"' in line:
                counts[json.loads(line)["outcome"]["error"]["code"]] += 1
    return Counter({code: count for code, count in counts.items() if code not in NO_ANSWER})
