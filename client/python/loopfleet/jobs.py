"""Makes jobs from a Job, a URI, (URI, actions), or a dict with the fields of a job line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Union

from . import _core
from ._core import Job, JobError, Outcome, full_uri

if TYPE_CHECKING:
    from typing_extensions import Unpack


class JobFields(TypedDict, total=False):
    """The optional fields of a job, and of a line that `loopfleet submit` reads; `loopfleet eval --help` explains
    them."""

    ir: str
    dialect: Literal["simple", "agent"]
    rules: Literal["structural", "loop_nest", "loop_nest_58"]
    on_illegal: Literal["reject", "skip"]
    merge_all_first: bool
    device: Literal["cpu", "cuda", "any"]
    labels: list[str]
    affinity: str
    threads: int
    cache: Literal["warm", "cold"]
    priority: int
    precision: float
    budget_ms: float
    cut_above_ns: int
    deadline_s: float
    fresh: bool
    max_age_s: float
    min_grade: Literal["A", "B", "C", "D"]
    profile: Literal["none", "roots", "loops", "lines"]  # Client.profile() reads the answer
    passes: list[str]   # of a program (docs/LLVM.md)
    observe: list[str]  # of a program
    tag: Any


JobLike = Union[Job, str, tuple, Mapping[str, Any]]
Actions = Union[str, Iterable[str]]


def names_of(actions: Actions) -> list[str]:
    if isinstance(actions, str):
        return actions.replace(",", " ").split()
    names = list(actions)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"an action is a name, such as 'split_4', not {name!r:.60}")
    return names


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a field of a job cannot hold a {type(value).__name__}: {value!r:.80}")


def job(benchmark: str | None = None, actions: Actions = (), **fields: Unpack[JobFields]) -> Job:
    """One job. ``fields`` are those of a job line: see JobFields.

    Raises JobError, which states the invalid field or action and the nearest valid one.
    """
    names = names_of(actions)
    if benchmark is not None:
        benchmark = full_uri(benchmark)
    if not fields and isinstance(benchmark, str):
        return Job.simple(benchmark, names)
    given = {} if benchmark is None else {"benchmark": benchmark}
    return Job(json.dumps({**given, "actions": names, **fields}, default=_plain))


def make_job(given: JobLike) -> Job:
    if isinstance(given, Job):
        return given
    if isinstance(given, str):
        return job(given)
    if isinstance(given, Mapping):
        return job(**{"actions": (), **given})
    if isinstance(given, tuple) and 1 <= len(given) <= 2:
        return job(*given)
    raise TypeError(f"a job is a Job, a URI, (URI, actions) or a dict, not {type(given).__name__}")


def jobs_of(given: Iterable[JobLike]) -> list[JobLike]:
    """TypeError: it is one job, of which a text's letters or a dict's keys would be taken for jobs."""
    if isinstance(given, (Job, str, Mapping)):
        raise TypeError(f"jobs are a list, not one job: [{given!r:.80}]")
    return list(given)


def make_jobs(given: Iterable[JobLike]) -> tuple[list[Job], list[int], list[tuple[int, Outcome]]]:
    """(jobs that can be sent, their indices in ``given``, (index, outcome) of the others)."""
    jobs: list[Job] = []
    places: list[int] = []
    failed: list[tuple[int, Outcome]] = []
    for place, item in enumerate(jobs_of(given)):
        try:
            made = make_job(item)
        except JobError as error:
            failed.append((place, _rejected(place, item, error.code, str(error), error.action_index)))
            continue
        problem = _core.failure_of(made)
        if problem is not None:
            code, message, action_index = problem
            failed.append((place, _core.failed_outcome(code, message, action_index, place, made.benchmark,
                                                       made.actions)))
            continue
        jobs.append(made)
        places.append(place)
    return jobs, places, failed


def _rejected(place: int, item: JobLike, code: str, message: str, action_index: int | None) -> Outcome:
    benchmark: Any = item
    if isinstance(item, Mapping):
        benchmark = item.get("benchmark") or item.get("ir")
    elif isinstance(item, tuple):
        benchmark = item[0]
    return _core.failed_outcome(code, message, action_index, place,
                                benchmark if isinstance(benchmark, str) else "", [])
