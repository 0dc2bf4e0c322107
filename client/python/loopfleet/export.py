"""Exports data sets as files: Parquet, JSON lines or CSV, in a folder with one file per part, a
card, checksums and the provenance. `python -m loopfleet.export --help`."""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import pickle
import shutil
import signal
import statistics
import sys
import tempfile
import threading
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from . import _core
from .campaign import Spec, read_spec
from .client import Client
from .errors import LoopfleetError
from .export_file import WRITERS, Writer, arrow_schema
from .followed_export import FollowedExport, follow
from .outcome_feed import is_postgres, open_feed, rows_of_feed
from .rows import FIELDS, NO_VERDICT, SUSPECT, Row, rows_of_batches, rows_of_coordinator, rows_of_file
from .splits import PARTS, Split

__all__ = ["FORMATS", "Summary", "arrow_schema", "card", "check", "export", "main"]

FORMATS = tuple(WRITERS)
_GROUP_ROWS = 20_000  # rows per part held in memory


@dataclass
class Summary:
    """What an export wrote."""

    columns: list[str] = field(default_factory=lambda: list(FIELDS))
    rows: Counter = field(default_factory=Counter)      # per part
    statuses: Counter = field(default_factory=Counter)
    grades: Counter = field(default_factory=Counter)
    gflops: array = field(default_factory=lambda: array("d"))
    spreads: array = field(default_factory=lambda: array("d"))
    duplicates: int = 0
    of_campaign: int = 0  # rows that are points of the card's campaign
    programs: set = field(default_factory=set)
    hardware: set = field(default_factory=set)
    compilers: set = field(default_factory=set)
    first: str = ""
    last: str = ""

    def add(self, row: Row, part: str, campaign: str | None = None) -> None:
        self.rows[part] += 1
        self.of_campaign += campaign is not None and _campaign_tag(row["tag"]).get("campaign") == campaign
        self.statuses[row["status"]] += 1
        if row["status"] == "ok":
            self.grades[row["grade"]] += 1
            self.gflops.append(row["gflops"])
            self.spreads.append(row["spread"])
        self.programs.add(row["program"])
        if row["hardware_class"]:
            self.hardware.add((row["hardware_class"], row["hardware_model"]))
            self.compilers.add((row["llvm"], row["tier"], row["lowering"]))
        if time := row["finished_at"]:  # damaged rows have no time
            self.first = min(self.first or time, time)
            self.last = max(self.last, time)


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


_MOST_LACKS = 3


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
    copies = _campaign_tag(tag).get("copies")
    return isinstance(copies, int) and copies > 1


def _campaign_tag(tag: str | None) -> dict[str, Any]:
    """The tag of a campaign's job; empty: it is of another one."""
    if not tag or '"campaign"' not in tag:
        return {}
    try:
        told = json.loads(tag)
    except (ValueError, RecursionError):  # a tag from an older version
        return {}
    return told if isinstance(told, dict) and "campaign" in told else {}


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


def card(facts: dict[str, Any]) -> str:
    """The README.md, in the layout that `datasets.load_dataset(folder)` reads."""
    extension = facts["format"]
    parts = "".join(f"  - split: {part}\n    path: data/{part}.{extension}\n" for part in PARTS
                    if facts["rows"].get(part))
    counts = "".join(f"| {part} | {facts['rows'].get(part, 0):,} |\n" for part in PARTS)
    advice = {name: text for _, name, _, text in _core.failure_codes()}
    statuses = "".join(f"| {code} | {count:,} | {advice.get(code, 'measured')} |\n"
                       for code, count in sorted(facts["statuses"].items()))
    meaning = {"A": "two moments agree within 1 %", "B": "within 5 %", "C": "worse", "D": "an order of magnitude"}
    grades = "".join(f"| {grade} | {count:,} | {meaning.get(grade, '')} |\n" for grade, count in facts["grades"].items())
    figures = "No row has a figure." if facts["gflops_range"] is None else (
        f"From {facts['gflops_range'][0]:.4g} to {facts['gflops_range'][1]:.4g} GFLOP/s; the interval of about 95 % is "
        f"±{100 * facts['median_spread']:.2g} % (median). Leave grades out that are too coarse for your question.\n\n"
        f"| grade | rows | |\n|---|---|---|\n{grades}")
    reader = {"parquet": "read_parquet('data/train.parquet')", "csv": "read_csv('data/train.csv')",
              "jsonl": "read_json('data/train.jsonl', lines=True)"}[extension]
    licence = f"license: {facts['licence'].lower()}\n" if facts["licence"] else ""
    drawn = ""
    if facts["campaign"]:
        given = "".join(f"{key} = {json.dumps(value)}\n" for key, value in facts["campaign"].items())
        drawn = f"""
## How the points were drawn

Rows that are points of this campaign: {facts["campaign_rows"]:,} of {sum(facts["rows"].values()):,}.

Each point is a benchmark, drawn evenly from the list, and a walk of uniformly drawn legal actions, whose length is drawn
evenly between `min_length` and `max_length`. The same file gives the same points:

```toml
{given}```
"""
    hardware = "".join(f"- {model} (class `{kind}`)\n" for kind, model in facts["hardware"])
    compilers = "".join(f"- LLVM {llvm}, tier {tier}, lowering {lowering}\n"
                        for llvm, tier, lowering in facts["compilers"])
    columns = "".join(f"| `{name}` | {FIELDS[name]} |\n" for name in facts["columns"])
    doubts = "" if SUSPECT in facts["columns"] else f"""
Which figures were doubted after they were measured stands in the coordinator's database file alone, so
there is no column `{SUSPECT}`: an export of that file has it.
"""
    total = sum(facts["rows"].values())
    return f"""---
pretty_name: {json.dumps(facts["name"])}
{licence}tags:
- compilers
- performance
- loop-schedules
configs:
- config_name: default
  data_files:
{parts}---

# {facts["name"]}

{_core.counted(total, "loop schedule", "loop schedules")} ({facts["statuses"].get("ok", 0):,} measured) of {_core.counted(facts["programs"], "program", "programs")}, made by {facts["made_by"]} on {facts["made_at"]}
from {facts["source"] or "outcomes in memory"}; measured from {facts["finished"][0] or "-"} to {facts["finished"][1] or "-"}.

Every figure is of a kernel whose output was compared with a reference before and after it was timed. Rows that failed
are kept: they have a code in `status` and no figures, never zeros. `CUT` rows are censored: slower than a bound that
their job gave.

```python
import pandas
train = pandas.{reader}
print(train[train.status == "ok"].groupby("grade").gflops.describe())
```

## Figures

{figures}{drawn}
## Parts

Rows are split by the hash of their **{facts["split"]}** (seed {facts["seed"]}, shares {list(facts["shares"])}), so no
{facts["split"]} is in two parts, and adding rows moves none.

| part | rows |
|---|---|
{counts}
{"Duplicate questions were left out: " + format(facts["duplicates_left_out"], ",") + "." if facts["dedup"] else
 "Duplicate questions were kept."}

| status | rows | |
|---|---|---|
{statuses}
## Hardware and compilers

{hardware}{compilers}
## Columns

| column | meaning |
|---|---|
{columns}{doubts}
`SHA256SUMS` has the checksum of every file, `provenance.json` the facts above for programs.
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="loopfleet-export", description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", help="what to make; must not be there yet, but with --replace or --follow")
    parser.add_argument("--db", metavar="FILE|postgresql://...", help="a database file, or PostgreSQL (else a coordinator is asked)")
    parser.add_argument("--follow", action="store_true",
                        help="go on where FOLDER ends, in files partitioned by day, until it is interrupted; needs --db")
    parser.add_argument("--once", action="store_true", help="with --follow: end when everything is there")
    parser.add_argument("--every", type=float, default=60.0, metavar="SECONDS", help="with --follow: between looks (60)")
    parser.add_argument("--rows", type=int, default=50_000, help="with --follow: at most in one file (50000)")
    parser.add_argument("--address", help="the coordinator's")
    parser.add_argument("--batch", type=int, action="append", help="of the coordinator; default: all")
    parser.add_argument("--format", choices=FORMATS, default="parquet")
    parser.add_argument("--split", choices=("program", "region", "device"), default="program")
    parser.add_argument("--seed", type=int, default=0, help="of the split")
    parser.add_argument("--keep-duplicates", action="store_true")
    parser.add_argument("--name", help="for the card; default: the campaign's, else \"loop schedules\"")
    parser.add_argument("--campaign", metavar="SPEC", help="for the card: the campaign's TOML file")
    parser.add_argument("--licence", default="", metavar="SPDX", help="for the card, such as CC-BY-4.0")
    parser.add_argument("--replace", action="store_true", help="put it in the place of an earlier export")
    given = parser.parse_args(arguments)
    if given.follow:
        for flag, is_given in (("--address", given.address), ("--batch", given.batch), ("--replace", given.replace),
                               ("--campaign", given.campaign), ("--name", given.name), ("--licence", given.licence)):
            if is_given:
                parser.error(f"{flag} does not go with --follow")
        if not given.db:
            parser.error("--follow needs --db: a database file, or postgresql://...")
        if given.every <= 0 or given.rows <= 0:
            parser.error("--every and --rows must be above 0")
        return _follow(given)
    if given.once:
        parser.error("--once goes with --follow")
    if given.batch and given.db:
        parser.error("--batch needs a coordinator; it cannot be used with --db")
    for batch in given.batch or ():
        if not 1 <= batch < 2**63:
            parser.error(f"--batch: {batch} is no batch's number")
    try:
        spec = read_spec(given.campaign) if given.campaign else None
        options = {"format": given.format, "split": Split(given.split, seed=given.seed),
                   "dedup": not given.keep_duplicates, "replace": given.replace, "campaign": spec,
                   "name": given.name or (spec.name if spec else "loop schedules"), "licence": given.licence}
        if given.db and is_postgres(given.db):
            summary = export(rows_of_feed(open_feed(given.db)), given.folder, source="PostgreSQL", **options)
        elif given.db:
            summary = export(rows_of_file(given.db), given.folder,
                             source=f"the database {Path(given.db).name}",
                             **options)
        else:
            with Client(given.address) as client:
                rows = rows_of_batches(client, given.batch) if given.batch else rows_of_coordinator(client)
                summary = export(rows, given.folder, source="a coordinator", **options)
    except (LoopfleetError, OSError) as error:
        print(f"loopfleet-export: {error}", file=sys.stderr)
        return 1
    rows = ", ".join(f"{part} {summary.rows[part]:,}" for part in PARTS)
    print(f"{given.folder}: {rows}; {summary.statuses['ok']:,} measured, {_core.counted(summary.duplicates, 'duplicate', 'duplicates')} left out")
    return 0


def _follow(given: argparse.Namespace) -> int:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        with FollowedExport(given.folder, format=given.format, split=Split(given.split, seed=given.seed)) as exported:
            rows = follow(lambda: open_feed(given.db), exported, stop, most_rows=given.rows,
                          interval_s=given.every, once=given.once)
    except (LoopfleetError, OSError) as error:
        print(f"loopfleet-export: {error}", file=sys.stderr)
        return 1
    print(f"{given.folder}: {_core.counted(rows, 'new row', 'new rows')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
