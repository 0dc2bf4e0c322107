#!/usr/bin/env python3
"""Makes the data set of schedule_dataset.toml: runs the campaign (run it again to go on), exports it by region, and
writes how deep each program's landscape is: the expected best of 5 to 1,000 random walks over the untuned schedule.

    LOOPFLEET_BIN=build/release/bin python client/python/examples/schedule_dataset.py --folder schedules
    ... --points 4000       a small one, to try it
    ... --address tcp://head:5570    on a cluster that runs already; needs --db, the coordinator's database file

FOLDER/data has the rows and the card, FOLDER/landscape.{md,json,png} the statistics. 280,000 points take a worker that
answers 300 a second 16 minutes.
"""

import argparse
import contextlib
import dataclasses
import json
import sys
from pathlib import Path

import loopfleet
from loopfleet import campaign
from loopfleet.export import export
from loopfleet.models.landscapes import landscape, plot, rows_of_campaign, table
from loopfleet.rows import rows_of_file
from loopfleet.splits import Split

SPEC = Path(__file__).with_name("schedule_dataset.toml")
MOST_FAILED = 0.005  # share of the points


def specification(points=None):
    spec = campaign.read_spec(SPEC)
    return spec if points is None else dataclasses.replace(spec, name=f"schedules-{points}", points=points)


def cluster_of(given):
    """The cluster to measure on, and its database."""
    if given.address:
        return contextlib.nullcontext(), given.db
    database = given.folder / "results.db"
    return loopfleet.LocalCluster(workers=given.workers, database=database), database


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--points", type=int, help="default: those of the specification, 280,000")
    parser.add_argument("--workers", type=int, default=1, help="of the cluster that it starts")
    parser.add_argument("--address", help="of a coordinator; default: it starts a cluster")
    parser.add_argument("--db", type=Path, help="that coordinator's database file, or a snapshot")
    parser.add_argument("--hardware-class", metavar="CLASS", help="the statistics are of figures of this one only")
    parser.add_argument("--licence", default="CC-BY-4.0", help="for the card")
    given = parser.parse_args()
    if bool(given.address) != bool(given.db):
        parser.error("--address and --db belong together")
    given.folder.mkdir(parents=True, exist_ok=True)
    spec = specification(given.points)
    cluster, database = cluster_of(given)
    with cluster, loopfleet.Client(given.address) as client:
        progress = campaign.run(spec, given.folder / spec.name, client)
    print(f"campaign: {progress}", flush=True)
    failed = progress.failed / progress.done
    summary = export(rows_of_file(database), given.folder / "data", name=spec.name, campaign=spec, replace=True,
                     split=Split("region"), licence=given.licence, source="schedule_dataset.py")
    print(f"export: {dict(summary.rows)} rows, {summary.duplicates:,} duplicates left out", flush=True)
    landscapes = landscape(rows_of_campaign(given.folder / spec.name, given.hardware_class))
    (given.folder / "landscape.md").write_text(table(landscapes) + "\n")
    (given.folder / "landscape.json").write_text(json.dumps([dataclasses.asdict(one) for one in landscapes], indent=1) + "\n")
    plot(landscapes, given.folder / "landscape.png")
    print(f"landscape: {len(landscapes)} programs, {failed:.2%} of the points failed")
    if failed > MOST_FAILED:
        sys.exit(f"more than {MOST_FAILED:.1%} of the points failed: `loopfleet campaign show` says why")


if __name__ == "__main__":
    main()
