"""Exports data sets as files: Parquet, JSON lines or CSV, in a folder with one file per part, a card, checksums and the
provenance."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from .. import _core
from ..campaign import read_spec
from ..client import Client
from ..errors import LoopfleetError
from ..rows import rows_of_batches, rows_of_coordinator, rows_of_file
from ..splits import PARTS, Split
from .dataset import FORMATS, export
from .followed import FollowedExport, follow
from .outcome_feed import is_postgres, open_feed, rows_of_feed


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="loopfleet-export", description=__doc__)
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
        return given
    if given.once:
        parser.error("--once goes with --follow")
    if given.batch and given.db:
        parser.error("--batch needs a coordinator; it cannot be used with --db")
    for batch in given.batch or ():
        if not 1 <= batch < 2**63:
            parser.error(f"--batch: {batch} is no batch's number")
    return given


def _export(given: argparse.Namespace) -> str:
    """What was written."""
    spec = read_spec(given.campaign) if given.campaign else None
    options = {"format": given.format, "split": Split(given.split, seed=given.seed),
               "dedup": not given.keep_duplicates, "replace": given.replace, "campaign": spec,
               "name": given.name or (spec.name if spec else "loop schedules"), "licence": given.licence}
    if given.db and is_postgres(given.db):
        summary = export(rows_of_feed(open_feed(given.db)), given.folder, source="PostgreSQL", **options)
    elif given.db:
        summary = export(rows_of_file(given.db), given.folder, source=f"the database {Path(given.db).name}", **options)
    else:
        with Client(given.address) as client:
            rows = rows_of_batches(client, given.batch) if given.batch else rows_of_coordinator(client)
            summary = export(rows, given.folder, source="a coordinator", **options)
    parts = ", ".join(f"{part} {summary.rows[part]:,}" for part in PARTS)
    return (f"{parts}; {summary.statuses['ok']:,} measured, "
            f"{_core.counted(summary.duplicates, 'duplicate', 'duplicates')} left out")


def _follow(given: argparse.Namespace) -> str:
    """What was written, once it is interrupted or, with --once, everything is there."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with FollowedExport(given.folder, format=given.format, split=Split(given.split, seed=given.seed)) as exported:
        rows = follow(lambda: open_feed(given.db), exported, stop, most_rows=given.rows, interval_s=given.every,
                      once=given.once)
    return _core.counted(rows, "new row", "new rows")


def main(arguments: list[str] | None = None) -> int:
    given = _parsed(arguments)
    try:
        written = _follow(given) if given.follow else _export(given)
    except (LoopfleetError, OSError) as error:
        print(f"loopfleet-export: {error}", file=sys.stderr)
        return 1
    print(f"{given.folder}: {written}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
