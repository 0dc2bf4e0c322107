"""StatusLines: the two lines on top: what is edited where, and how quick it is."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from . import palette
from .editor import Editor
from .number_text import clock_text, rate_text, sparkline, time_text
from .palette import BRIGHT, DIM, GOOD, MARK, TEXT

_LONGEST_SPARKLINE = 16


def _joined(parts: Iterable[Text]) -> Text:
    return Text("   ").join([part for part in parts if part])


def spread_out(left: Text, right: Text, width: int) -> Text:
    """One at each end of a line; the right one goes first when it is narrow."""
    line = Text(" ").append_text(left)
    gap = width - line.cell_len - right.cell_len - 1
    if gap >= 2:
        line.append(" " * gap).append_text(right)
    line.truncate(width, overflow="ellipsis")
    return line


def place_line(editor: Editor, width: int) -> Text:
    graded = editor.newest_graded
    where = Text("no cluster: local figures only", DIM)
    if graded is not None:
        where = _joined([Text(graded.hardware, DIM), Text(f"worker {graded.worker}", DIM)])
    elif editor.sources.cluster:
        where = Text(editor.sources.cluster, DIM)
    best = []
    if (step := editor.best) is not None:
        figure = editor.figure_of(step).graded
        best.append(Text.assemble(("best ", DIM), (f"{rate_text(figure.gflops)} {figure.grade}", TEXT)))
    if editor.fleet_best is not None:
        known = editor.fleet_best
        best.append(Text.assemble(("fleet best ", DIM), (f"{rate_text(known.gflops)} {known.grade}".strip(), TEXT)))
    left = _joined([Text(editor.title, f"bold {BRIGHT}"), Text(f"threads {editor.threads}", DIM), where])
    return spread_out(left, _joined(best), width)


def figure_line(editor: Editor, width: int) -> Text:
    steps = editor.history.steps
    parts = [_local_part(editor), *_graded_parts(editor), _scratch_part(editor)]
    graded = [graded.gflops for step in steps if (graded := editor.figure_of(step).graded)]
    spark = Text(sparkline(graded, _LONGEST_SPARKLINE), palette.LOOP)
    place = Text(f"{editor.history.position} of {len(steps) - 1}" if len(steps) > 1 else "", DIM)
    return spread_out(_joined(parts), _search_part(editor) or _joined([spark, place]), width)


def _local_part(editor: Editor) -> Text:
    figure = editor.figure
    if figure.local_failure:
        return Text(f"~ {figure.local_failure.partition(':')[0]} local", palette.BAD)
    if figure.local_gflops is None:
        return Text("~ ... local" if figure.is_measured_here else "", DIM)
    return Text(f"~{rate_text(figure.local_gflops)} local", DIM if figure.is_measured_here else TEXT)


def _graded_parts(editor: Editor) -> list[Text]:
    figure = editor.figure
    if figure.graded_failure and not figure.is_measured:
        return [Text(figure.graded_failure, palette.BAD)]
    if figure.graded is None:
        return [Text("measuring ..." if figure.is_measured else "", MARK)]
    graded = figure.graded
    rate = Text.assemble((rate_text(graded.gflops), f"bold {BRIGHT}"), (" GFLOP/s", DIM))
    grade = Text.assemble((graded.grade, palette.OF_GRADE.get(graded.grade, TEXT)), (f" ±{graded.spread * 100:.1f} %", DIM))
    return [rate, grade, Text(time_text(graded.elapsed_ns), TEXT), Text("again ..." if figure.is_measured else "", MARK)]


def _scratch_part(editor: Editor) -> Text:
    scratch = editor.scratch_bytes
    if not scratch:
        return Text("" if scratch is None else "no scratch", DIM)
    return Text.assemble(("scratch ", DIM), (f"{scratch:,} B", TEXT), (f" = {scratch // 4:,} floats", DIM))


def _search_part(editor: Editor) -> Text:
    search = editor.search
    if search is None:
        return Text()
    found = f"best {rate_text(search.best.gflops)}" if search.best else ""
    doing = f"search {clock_text(search.seconds)}" if search.is_running else "search is done"
    return _joined([Text(doing, MARK), Text(f"{search.trees} trees", DIM), Text(found, GOOD),
                    Text("B stops" if search.is_running else "B shows it", DIM)])
