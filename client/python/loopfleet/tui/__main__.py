"""`loopfleet tune`: the schedule editor of a benchmark on this terminal."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from .. import _core
from .._core import MOST_THREADS, LoopTree, full_uri
from ..client import Client
from ..errors import LoopfleetError, ScheduleError
from ..schedule_file import find_schedule
from ..settings import find_address_or_none
from . import run
from .editor import Editor
from .sources import sources_of

_USAGE_ERROR = 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="loopfleet tune", description="Edits the schedule of a benchmark by keys; ? shows them.",
                                     epilog="See docs/EDITOR.md.")
    parser.add_argument("benchmark", nargs="?", help="a benchmark's URI")
    parser.add_argument("--ir", metavar="FILE", help="a file with a program's IR text, instead of a benchmark")
    parser.add_argument("--schedule", metavar="FILE", help="a file of schedules: begins with the one of this program, and W writes to it")
    parser.add_argument("--c", metavar="FILE", help="where to keep the C text of the schedule as it is")
    parser.add_argument("--address", metavar="ENDPOINT", help="the coordinator; without one, figures are this machine's alone")
    parser.add_argument("--keys", metavar="DIR", help="directory with this client's key and coordinator.key")
    parser.add_argument("--threads", metavar="N", type=int, default=1, help="threads that parallel loops are split over (default 1)")
    return parser


def _start_of(given: argparse.Namespace) -> tuple[LoopTree, str]:
    """The tree to begin with, and its name."""
    if (given.benchmark is None) == (given.ir is None):
        raise ScheduleError("give either a benchmark's URI or --ir FILE")
    if given.ir is not None:
        return LoopTree(Path(given.ir).read_text(encoding="utf-8")), Path(given.ir).name
    uri = full_uri(given.benchmark)
    return LoopTree(uri), uri.rpartition("/")[2]


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    if not 1 <= given.threads <= MOST_THREADS:
        return _complain(f"--threads is from 1 to {MOST_THREADS}, not {given.threads}")
    try:
        start, title = _start_of(given)
        opened = find_schedule(given.schedule, start.program_key) if given.schedule and os.path.exists(given.schedule) else None
    except (LoopfleetError, OSError, ValueError) as error:
        return _complain(str(error))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _complain("the editor needs a terminal; `loopfleet replay` applies actions without one")
    address = find_address_or_none(given.address)
    client = Client(address, keys=given.keys, program=f"loopfleet-tune {_core.__version__}") if address else None
    try:
        editor = Editor(start, title=title, threads=given.threads, sources=sources_of(client), c_path=given.c or "",
                        schedule_path=given.schedule or "")
        if opened is not None:
            editor.adopt("open", opened)
        run(editor)
    except LoopfleetError as error:
        print(f"loopfleet: {error}", file=sys.stderr)
        return 1
    finally:
        if client is not None:
            client.close()
    _tell(editor)
    return 0


def _tell(editor: Editor) -> None:
    """The schedule that was left, for a job or a script."""
    actions = editor.actions
    if actions is None:
        print(editor.tree, end="")
    elif actions:
        print(",".join(actions))


def _complain(message: str) -> int:
    print(f"loopfleet: {message}", file=sys.stderr)
    return _USAGE_ERROR


if __name__ == "__main__":
    sys.exit(main())
