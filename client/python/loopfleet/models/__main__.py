"""`python -m loopfleet.models evaluate DATA`, `landscape CAMPAIGN`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from ..errors import JobError, LoopfleetError
from .evaluation import MODELS, Summary, evaluations
from .landscapes import landscape, plot, rows_of_campaign, table
from .measured import read_rows


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m loopfleet.models", description="Judges models and data sets.")
    commands = parser.add_subparsers(dest="command", required=True)
    judge = commands.add_parser("evaluate", help="peak@1 and pairwise accuracy on programs that were held out")
    judge.add_argument("data", help="a Parquet file, or the folder of an export")
    judge.add_argument("--models", default=",".join(MODELS), help=f"default: {','.join(MODELS)}")
    judge.add_argument("--split", default="region", help="what is held out as a whole: region (default) or program")
    judge.add_argument("--seed", type=int, default=0, help="of the split and of the models")
    judge.add_argument("--splits", type=int, default=1, metavar="N", help="splits by N seeds from --seed on, and their spread")
    judge.add_argument("--threads", type=int, default=0, help="of xgboost; 0: all cores")
    judge.add_argument("--kernel-threads", type=int, metavar="N", help="only kernels of so many threads")
    judge.add_argument("--cache", choices=("warm", "cold"), help="only figures of this state")
    judge.add_argument("--suspect", action="store_true", help="use figures that were doubted later, such as a busy host's")
    depth = commands.add_parser("landscape", help="expected best of random walks over the untuned schedule")
    depth.add_argument("campaign", help="a campaign's folder")
    depth.add_argument("--plot", metavar="FILE", help="PNG or SVG")
    for each in (judge, depth):
        each.add_argument("--hardware-class", metavar="CLASS", help="only figures of this one")
        each.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if given.command == "evaluate" and given.splits < 1:
        parser.error(f"--splits must be at least 1, not {given.splits}")
    try:
        if given.command == "evaluate":
            chosen = {"hardware_class": given.hardware_class, "threads": given.kernel_threads, "cache": given.cache}
            rows = read_rows(given.data, **{name: value for name, value in chosen.items() if value is not None})
            seeds = range(given.seed, given.seed + given.splits)
            found = []
            for one in evaluations(rows, [name for name in given.models.split(",") if name], seeds, split=given.split,
                                   threads=given.threads, use_suspect=given.suspect):
                found.append(one)
                print(json.dumps(one.to_dict()) if given.json else one, flush=True)
            if len(found) > 1:
                whole = Summary.of(found)
                print(json.dumps(whole.to_dict()) if given.json else whole)
            return 0
        landscapes = landscape(rows_of_campaign(given.campaign, given.hardware_class))
        print(json.dumps([asdict(one) for one in landscapes]) if given.json else table(landscapes))
        if given.plot:
            plot(landscapes, given.plot)
    except (LoopfleetError, JobError, OSError) as error:
        print(f"loopfleet.models: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
