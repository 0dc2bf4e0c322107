"""Writes a data set: a folder with one file per part, a card, checksums and the provenance."""

from __future__ import annotations

import hashlib
import itertools
import json
import pickle
import shutil
import statistics
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from .. import _core
from ..campaign import Spec
from ..errors import LoopfleetError
from ..rows import FIELDS, NO_VERDICT, SUSPECT, Row
from ..splits import PARTS, Split
from .data_card import card
from .part_file import WRITERS, Writer
from .summary import Summary, campaign_tag

FORMATS = tuple(WRITERS)
_GROUP_ROWS = 20_000  # rows per part held in memory
_MOST_LACKS = 3  # of a row: see _lacks()


def export(rows: Iterable[Row], folder: str | Path, *, format: str = "parquet", split: Split | None = None,
           dedup: bool = True, name: str = "loop schedules", source: str = "", replace: bool = False,
           campaign: Spec | None = None, licence: str = "") -> Summary:
    """Writes ``rows`` to ``folder``, which must not exist yet, or with ``replace`` may be an earlier
    export. The folder appears complete or not at all. ``campaign`` (how the points were drawn) and
    ``licence`` (an SPDX identifier) are for the card.

    Failed and censored rows are kept, with their codes and without figures; those of NO_VERDICT,
    such as cancelled ones, are left out. ``dedup`` keeps the first measured row per (tree, device
    class, compiler, threads, cache, policy), for a campaign's paired points one per worker, and one
    failure per (program, benchmark, actions, code). So figures measured again (``confirm_share``)
    are duplicates. A trusted figure replaces a ``suspect`` one, and a measured row a copy of it without
    samples. The columns are those of the rows: a coordinator's have no ``suspect``.
    """
    if format not in FORMATS:
        raise LoopfleetError(f"unknown format '{format}'{_core.nearest(format, list(FORMATS))}; "
                             f"valid: {', '.join(FORMATS)}")
    split = split or Split()
    folder = Path(folder)
    if folder.exists() and not replace:
        raise LoopfleetError(f"{folder} already exists; replace=True (--replace) puts the new export in its place")
    if folder.exists() and not (folder / "SHA256SUMS").exists():
        raise LoopfleetError(f"{folder} is no export (it has no SHA256SUMS): it is not replaced")
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        making.chmod(0o755)
        summary = _write_parts(rows, making / "data", format, split, dedup, campaign.name if campaign else None)
        facts = {"name": name, "source": source, "format": format, "columns": summary.columns,
                 "split": split.kind, "shares": split.shares,
                 "seed": split.seed, "dedup": dedup, "rows": dict(summary.rows),
                 "statuses": dict(summary.statuses), "grades": dict(sorted(summary.grades.items())),
                 "gflops_range": [min(summary.gflops), max(summary.gflops)] if summary.gflops else None,
                 "median_spread": statistics.median(summary.spreads) if summary.spreads else None,
                 "campaign": asdict(campaign) if campaign else None,
                 "campaign_rows": summary.of_campaign if campaign else None,
                 "licence": licence, "duplicates_left_out": summary.duplicates,
                 "programs": len(summary.programs), "hardware": sorted(summary.hardware),
                 "compilers": sorted(summary.compilers, key=str), "finished": [summary.first, summary.last],
                 "made_by": f"loopfleet {_core.__version__}",
                 "made_at": datetime.now(timezone.utc).isoformat(timespec="seconds")}
        (making / "provenance.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        (making / "README.md").write_text(card(facts), encoding="utf-8")
        (making / "SHA256SUMS").write_text("".join(_checksums(making)), encoding="utf-8")
        if folder.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
            folder.rename(old / "old")
            making.rename(folder)
            shutil.rmtree(old)
        else:
            making.rename(folder)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise
    return summary


def check(folder: str | Path) -> list[str]:
    """The differences from SHA256SUMS; empty: unchanged."""
    folder = Path(folder)
    problems = []
    for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ", 1)
        path = folder / name
        if not path.is_file():
            problems.append(f"{name}: missing")
        elif _digest(path) != digest:
            problems.append(f"{name}: changed")
    return problems


def _write_parts(rows: Iterable[Row], folder: Path, format: str, split: Split, dedup: bool,
                 campaign: str | None) -> Summary:
    folder.mkdir()
    rows = iter(rows)
    if (first := next(rows, None)) is not None:
        rows = itertools.chain([first], rows)
    summary = Summary(columns=[name for name in FIELDS if first is None or name in first])
    columns = set(summary.columns)
    seen: set[bytes] = set()
    # Rows that are held back, because a later one may be better: on a busy host more than fit the memory. By _lacks().
    held_back = [tempfile.TemporaryFile(dir=folder) for _ in range(_MOST_LACKS)]
    least: dict[bytes, int] = {}  # of what is held back under a key
    held: dict[str, list[Row]] = {part: [] for part in PARTS}
    writers: dict[str, Writer] = {part: WRITERS[format](folder / f"{part}.{format}", summary.columns)
                                  for part in PARTS}

    def keep(row: Row) -> None:
        if row.keys() != columns:
            raise LoopfleetError("rows of a database and rows of a coordinator do not go into one data set")
        part = split.part(row)
        summary.add(row, part, campaign)
        held[part].append(row)
        if len(held[part]) == _GROUP_ROWS:
            writers[part].write(held[part])
            held[part] = []

    try:
        for row in rows:
            if row["status"] in NO_VERDICT:
                continue
            if dedup:
                key, *others = _questions(row)
                lacks = _lacks(row)
                if key in seen or lacks >= least.get(key, _MOST_LACKS + 1):
                    summary.duplicates += 1
                    continue
                if lacks:
                    least[key] = lacks
                    pickle.dump(((key, *others), row), held_back[lacks - 1])
                    continue
                seen.update((key, *others))
            keep(row)
        for file in held_back:
            file.seek(0)
            for keys, row in _unpickled(file):
                if keys[0] in seen:
                    summary.duplicates += 1
                    continue
                seen.update(keys)
                keep(row)
        for part in PARTS:
            writers[part].write(held[part])
    finally:
        for closing in (*held_back, *writers.values()):
            closing.close()
    return summary


def _unpickled(file: IO[bytes]) -> Iterator[Any]:
    while True:
        try:
            yield pickle.load(file)
        except EOFError:
            return


def _lacks(row: Row) -> int:
    """0: nothing. A figure has least if it is trusted; PostgreSQL gives samples with the measured row alone."""
    if row["status"] != "ok":
        return 0
    return 2 * bool(row.get(SUSPECT)) + (not row["samples_ns"] and row["source"] in ("stored", "coalesced"))


def _questions(row: Row) -> list[bytes]:
    """What the row answers; it is a duplicate if the first of these was answered before."""
    if row["status"] != "ok":
        return [_digest_of([row["program"], row["benchmark"], row["ir"], *row["actions"], row["status"]])]
    key = [row[name] for name in ("tree_key", "hardware_class", "llvm", "tier", "lowering", "threads", "cache", "policy")]
    of_any, of_worker = _digest_of(key), _digest_of([*key, row["worker"]])
    return [of_worker, of_any] if _is_paired(row["tag"]) else [of_any, of_worker]


def _digest_of(key: list[Any]) -> bytes:
    return hashlib.blake2b(json.dumps(key).encode(), digest_size=16).digest()


def _is_paired(tag: str | None) -> bool:
    """Whether the row is a copy of a campaign's paired point."""
    copies = campaign_tag(tag).get("copies")
    return isinstance(copies, int) and copies > 1


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _checksums(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield f"{_digest(path)}  {path.relative_to(folder).as_posix()}\n"
