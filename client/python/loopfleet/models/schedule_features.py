"""What a model sees of a schedule: the product's own observations (`loops_tensor` in layout
agent58, `stride_tensor`, `scratch_bytes`, `flop_count`) and the loops of the canonical form, put so
that schedules of different programs are alike where their innermost loops are. No cluster is
needed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Union

import numpy as np

from .._core import Walk, full_uri
from ..rows import rebuild
from .errors import ModelError

# A walk; a pair of a benchmark's URI and actions; or a dict with "benchmark" or "ir", and "actions".
Schedule = Union[Walk, tuple[str, Sequence[str]], Mapping[str, Any]]

_LAYOUT = "agent58"
_LOOPS = 10           # of the loops around the first operation, the innermost ones
_NESTS = 3            # later ones are counted, but not looked at
_MOST_ROWS = 32       # of loops_tensor that are looked at
_BUCKETS = 12         # strides up to 2^11 elements; larger ones share a place
_FIRST_BUCKET = 26    # column of a row of agent58
_PER_LOOP = ("size", "tail", "vectorize", "unroll", "is_reduced", "extent", "reduced_extent", "same_dim_extent",
             *(f"stride_{1 << bucket}" for bucket in range(_BUCKETS)), "stride_more")
_PER_NEST = ("loops", "innermost_size", "vectorize")
# The same for all schedules of a program.
PROGRAM_FEATURES = ("flop_count", "program_extent", "program_reduced_extent", "program_dims",
                    "program_multiply", "program_add", "program_max", "program_exp", "program_others")
_OF_ALL = (*PROGRAM_FEATURES, "scratch_bytes", "loops", "other_loops", "nests", "reduced_extent", "extent",
           *(f"strides_{1 << bucket}" for bucket in range(_BUCKETS)), "strides_more")

_OPERATIONS = ("multiply", "add", "max", "exp", "others")

FEATURE_NAMES: tuple[str, ...] = (
    *(f"loop{place}_{name}" for place in range(_LOOPS) for name in _PER_LOOP),
    *(f"nest{place}_{name}" for place in range(1, _NESTS) for name in _PER_NEST), *_OF_ALL)
"""loop0 is the innermost loop around the first operation. Sizes, extents, counts and bytes are
log2(1 + x); an extent is the product of the sizes from a loop inwards."""


def features(schedules: Iterable[Schedule]) -> np.ndarray:
    """float32[schedules, len(FEATURE_NAMES)]. Equal trees have equal features, wherever the cursor
    is.

    A pair's or dict's actions are replayed under the rules "structural"; those that are illegal
    there are skipped, unless the dict has a ``tree_key``, which the replay must match.
    JobError: a benchmark or action is invalid, or no replay leads to ``tree_key``.
    """
    walks = [walk_of(each) for each in schedules]
    table = np.zeros((len(walks), len(FEATURE_NAMES)), np.float32)
    for row, walk in zip(table, walks):
        _fill(row, walk)
    return table


def walk_of(schedule: Schedule) -> Walk:
    """The walk to a schedule, in the layout that features() reads."""
    if isinstance(schedule, Walk):
        # Another layout has other columns.
        return schedule if _is_readable(schedule) else Walk(ir=schedule.observe("ir"), features=_LAYOUT)
    if isinstance(schedule, Mapping):
        schedule = plain_row(schedule)
        benchmark, ir, actions, key = (schedule.get(name) for name in ("benchmark", "ir", "actions", "tree_key"))
    else:
        try:
            benchmark, actions = schedule
        except (TypeError, ValueError):
            raise ModelError("a schedule is a Walk, (benchmark, actions) or a dict with these, not "
                             f"{schedule!r:.80}") from None
        ir = key = None
    walk = Walk(benchmark=full_uri(benchmark) if benchmark else "", ir="" if benchmark else ir or "",
                features=_LAYOUT)
    for name in () if actions is None else actions:
        walk.apply(name)
    if key and walk.tree_key.hex() != key:
        return rebuild(schedule, _LAYOUT)
    return walk


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """With None where pandas has not-a-number, even for a text."""
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}


def _is_readable(walk: Walk) -> bool:
    return len(walk.loops_tensor(1)) == 58


def _fill(row: np.ndarray, walk: Walk) -> None:
    header, _, loops = walk.canonical_form.partition("\nout ")
    reduced, of_program = _facts_of(header)
    rows = walk.loops_tensor(_MOST_ROWS).reshape(_MOST_ROWS, -1)
    leading, nests, others = _nests_of(loops)
    width = len(_PER_LOOP)
    extent = reduced_extent = 1
    of_dim: dict[str, int] = {}
    for place, (dim, size, tail, note) in enumerate(reversed(leading)):
        inner = of_dim.get(dim, 1)
        of_dim[dim] = inner * size + tail
        extent *= size
        is_reduced = dim in reduced
        if is_reduced:
            reduced_extent *= size
        if place >= _LOOPS:
            continue
        at = place * width
        row[at:at + 8] = (size, tail, note == "vectorize", note == "unroll", is_reduced, extent, reduced_extent, inner)
        number = len(leading) - 1 - place
        if number < _MOST_ROWS:
            strides = rows[number, _FIRST_BUCKET:]
            row[at + 8:at + 8 + _BUCKETS] = strides[:_BUCKETS]
            row[at + 8 + _BUCKETS] = strides[_BUCKETS:].sum()
    at = _LOOPS * width
    for nest in nests[1:_NESTS]:
        row[at:at + 3] = (len(nest), nest[-1][1] if nest else 0, any(loop[3] == "vectorize" for loop in nest))
        at += len(_PER_NEST)
    at = _LOOPS * width + (_NESTS - 1) * len(_PER_NEST)
    own = (walk.flop_count, *of_program, walk.observe("scratch_bytes"), len(leading), others, len(nests),
           reduced_extent, extent)
    row[at:at + len(own)] = own
    at += len(own)
    strides = np.asarray(walk.observe("stride_tensor"), np.float32)
    row[at:at + _BUCKETS] = strides[:_BUCKETS]
    row[at + _BUCKETS] = strides[_BUCKETS:].sum()
    np.log2(1 + row, out=row)


_Loop = tuple[str, int, int, str]  # dimension, size, tail, annotation


def _nests_of(loops: str) -> tuple[list[_Loop], list[list[_Loop]], int]:
    """Of the canonical form's lines: the loops around the first operation, those of each nest in
    order, and how many of the first nest are none of the former."""
    leading: list[_Loop] = []
    nests: list[list[_Loop]] = []
    is_leading = True
    for line in loops.splitlines()[1:]:  # the first one is the rest of "out ..."
        words = line.split()
        if words[1] != "for":
            is_leading = False
            continue
        loop = (words[2], int(words[3]), int(words[4]), words[5] if len(words) > 5 else "")
        if words[0] == "0":
            is_leading = not nests
            nests.append([])
        nests[-1].append(loop)
        if is_leading:
            leading.append(loop)
    return leading, nests, len(nests[0]) - len(leading) if nests else 0


@lru_cache(maxsize=4096)
def _facts_of(header: str) -> tuple[frozenset[str], tuple[int, ...]]:
    """Of a program: the dimensions that some operation sums up, or takes the largest of; the
    product of all sizes and of theirs, the number of dimensions, and of operations of each kind."""
    dims_of: list[set[str]] = []
    sizes: dict[str, int] = {}
    reduced: set[str] = set()
    operations = dict.fromkeys(_OPERATIONS, 0)
    for line in header.splitlines()[1:]:
        if line.startswith("in "):
            break
        head, _, rest = line.partition(")[")
        pairs = [dim.split("=") for dim in rest.partition("]")[0].split()]
        sizes.update({name: int(size) for name, size in pairs})
        dims = {name for name, _ in pairs}
        operation, _, operands = head.partition("(")
        if operation not in ("read", "view", "write"):
            operations[operation if operation in _OPERATIONS else "others"] += 1
            for operand in operands.split():
                reduced |= dims_of[int(operand.lstrip("%"))] - dims
        dims_of.append(dims)
    return frozenset(reduced), (math.prod(sizes.values()), math.prod(sizes[name] for name in reduced), len(sizes),
                               *operations.values())
