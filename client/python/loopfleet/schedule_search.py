"""Search: looks for the quickest schedule of a benchmark, or for the passes that leave the fewest
instructions of a program. The strategies are those of `loopfleet search`, in C++; the measuring goes
through a Client. See docs/SEARCH.md."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Union

from . import _core
from ._core import Outcome, full_uri
from .client import Client
from .confirmation import Turns, figures_that_count
from .errors import LoopfleetError
from .jobs import make_job, names_of

_TRIES = 3  # of a schedule whose outcome says nothing about it
_CONFIRMED = 3  # kernels, of which the quickest by its new figures is the best
# Fields of a job that would make it another schedule than the one that the strategy proposed.
_OWN_FIELDS = ("actions", "dialect", "merge_all_first", "observe", "on_illegal", "passes", "profile", "rules")

Actions = list[str]
# strategy(n, results) -> up to n action lists; none: it is done. results: (actions, ns or None), new ones;
# what a scorer passed over is not among them
Strategy = Union[str, Callable[[int, list], Sequence[Actions]]]
# scorer(action lists) -> a number each; the lower, the quicker
Scorer = Callable[[list], Sequence[float]]


class ScorerModel(Protocol):
    """A model that scores: CostModel or ComparisonModel of loopfleet.models, or one's own."""

    def scorer_for(self, benchmark: str | None, ir: str | None) -> Scorer:
        """If it has a method ``learn(action lists, ns or None of each)``, that is called with each
        batch of figures."""


class StartModel(Protocol):
    """A model that proposes schedules: PolicyModel of loopfleet.models, or one's own."""

    def start_for(self, benchmark: str | None, ir: str | None) -> Sequence[Actions]: ...


@dataclass(frozen=True)
class CurvePoint:
    """The best figure changed."""

    evaluations: int
    seconds: float
    best_ns: float


@dataclass(frozen=True)
class Progress:
    """How far a search is. None: there is no figure yet."""

    evaluations: int             # distinct schedules
    seconds: float
    best_actions: Actions | None
    best_ns: float | None
    flop_count: int              # 0: not known yet


# Called after each batch of figures; False ends the search, None does not.
Watch = Callable[[Progress], Union[bool, None]]


@dataclass(frozen=True)
class SearchResult:
    """What a search found. Times are nanoseconds of one run; None: there is no figure."""

    benchmark: str
    actions: Actions | None      # of the best schedule
    best_ns: float | None        # its figure in the search, which is in part luck
    confirmed_ns: float | None   # median of its new figures, by which it is the best; None also without ``confirm``
    untuned_ns: float | None     # of the benchmark's first tree, confirmed like the best
    flop_count: int
    evaluations: int             # distinct schedules
    without_figure: int
    seconds: float
    curve: list[CurvePoint]
    loop_tree: str | None
    failure: str | None = None   # where nothing has a figure: what the last outcome said
    confirmations: int = 0       # measurements by which the best were confirmed; no part of ``evaluations``
    disturbed: bool = False      # no new figure of the best has grade A or B: a neighbour may have slowed all of them

    @property
    def gflops(self) -> float | None:
        elapsed_ns = self.confirmed_ns or self.best_ns
        return self.flop_count / elapsed_ns if elapsed_ns else None

    @property
    def speed_up(self) -> float | None:
        """Over the untuned schedule."""
        elapsed_ns = self.confirmed_ns or self.best_ns
        return self.untuned_ns / elapsed_ns if elapsed_ns and self.untuned_ns else None


@dataclass(frozen=True)
class PassSearchResult:
    """The passes that leave the fewest instructions, of those tried. Counts are exact, so nothing is
    confirmed; None: there is none."""

    benchmark: str
    passes: list[str] | None
    instructions: float | None        # after them
    start_instructions: float | None  # of the program
    oz_instructions: float | None     # after -Oz
    evaluations: int                  # distinct sequences
    without_figure: int
    seconds: float
    curve: list[tuple[int, float, float]]  # evaluations, seconds, instructions at each improvement
    failure: str | None = None        # where nothing has a figure: what the last outcome said

    @property
    def oz_ratio(self) -> float | None:
        """-Oz's instructions over those found; above 1: better than -Oz."""
        return self.oz_instructions / self.instructions if self.instructions and self.oz_instructions else None


def search(benchmark: str | None = None, strategy: Strategy = "auto", *, seconds: float | None = None,
           evaluations: int | None = None, seed: int = 1, client: Client | None = None,
           scorer: Scorer | ScorerModel | None = None, start: Sequence[Actions] | StartModel = (), in_flight: int = 64,
           cut_factor: float = 4.0, confirm: bool = True, ir: str | None = None, watch: Watch | None = None,
           database: str | os.PathLike | None = None, **fields: Any) -> SearchResult | PassSearchResult:
    """Looks for the quickest schedule, until ``seconds`` or ``evaluations`` are over or nothing is
    left to try. Of a program (docs/LLVM.md), for the passes that leave the fewest instructions: then
    schedules are lists of passes, ``best_ns`` of a progress is a number of instructions, nothing is
    cut or confirmed, and a PassSearchResult is returned.

    ``strategy`` is a name of `loopfleet search --help`, or a callable; ``scorer`` chooses among many
    proposals of it, and a CostModel learns from the figures as they come. The schedules of
    ``start``, or of a PolicyModel, are measured first, after the untuned one. ``fields`` are those
    of every job, such as ``threads`` or ``labels``. A schedule ``cut_factor`` times slower than the
    best so far, or by 5 ms, is cut; 0: none is. Figures of other hardware classes than the first one's are not
    used. At the end the three quickest kernels and the untuned schedule are measured three times more, in turns (on a busy
    host more often, as Client.confirm() does); the medians say which is the best, unless ``confirm`` is False. ``watch(progress)`` is called after each ``in_flight``
    schedules; False ends the search. ValueError: a bad argument or field, with the nearest valid one.

    ``database`` answers in place of a client: a coordinator's file, which it may be writing to. Schedules that are not in
    it have no figure, and nothing is measured or confirmed, so a search that filled it is repeated by the same benchmark,
    strategy, seed, evaluations and in_flight. For loops, with one thread and warm caches.
    """
    if database is not None:
        if client is not None:
            raise ValueError("give either client or database, and not both: one of them answers")
        if fields:
            raise ValueError(f"'{next(iter(fields))}' cannot be given with database: the figures of the file are what they are")
    if (seconds is None) == (evaluations is None):
        raise ValueError("give either seconds or evaluations, and not both: one of them ends the search")
    if in_flight < 1:
        raise ValueError(f"in_flight must be at least 1, not {in_flight}")
    if evaluations is not None and evaluations < 1:
        raise ValueError(f"evaluations must be at least 1, not {evaluations}")
    if seconds is not None and seconds <= 0:
        raise ValueError(f"seconds must be more than 0, not {seconds}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must be from 0 to 2^64 - 1, not {seed}")
    for name in _OWN_FIELDS:
        if name in fields:
            raise ValueError(f"'{name}' cannot be given: the search chooses it for each job")
    if benchmark is not None:
        benchmark = full_uri(benchmark)
    begun = time.monotonic()  # what models take counts, too
    if hasattr(scorer, "scorer_for"):
        scorer = scorer.scorer_for(benchmark, ir)
    if hasattr(start, "start_for"):
        start = start.start_for(benchmark, ir)
    searcher = _core.Searcher(benchmark or "", ir or "", strategy, seed, scorer, [names_of(actions) for actions in start])
    given = {"benchmark": benchmark} if benchmark is not None else {"ir": ir}
    is_program = benchmark is not None and _core.kind_of(benchmark) == "passes"
    if is_program and database is not None:
        raise ValueError(f"database is for loops; '{benchmark}' is a program")
    kind = _PassRun if is_program else _Run
    run = kind(searcher, getattr(scorer, "learn", None), {**given, **fields}, begun, seconds, evaluations, in_flight,
               cut_factor, watch)
    if database is not None:
        return run.result(_Database(database), False)
    if client is not None:
        return run.result(client, confirm)
    with Client() as own:
        return run.result(own, confirm)


class _Database:
    """A client's part in a search, from a database file."""

    def __init__(self, file: str | os.PathLike):
        self._file = os.fspath(file)
        try:
            self._outcomes = _core.StoredOutcomes(self._file)
        except RuntimeError as error:
            raise LoopfleetError(f"{self._file}: {error}") from None

    def evaluate_many(self, jobs: Sequence[dict[str, Any]]) -> list[Outcome]:
        try:
            return self._outcomes.answer([make_job(job) for job in jobs])
        except RuntimeError as error:
            raise LoopfleetError(f"{self._file}: {error}") from None


class _Run:
    _client: Client | _Database

    def __init__(self, searcher: _core.Searcher, learn: Callable[[list, list], None] | None, fields: dict[str, Any],
                 begun: float, seconds: float | None, evaluations: int | None, in_flight: int, cut_factor: float, watch: Watch | None):
        self._searcher, self._learn, self._fields = searcher, learn, fields
        self._seconds, self._evaluations, self._in_flight = seconds, evaluations, in_flight
        self._cut_factor = cut_factor
        self._watch = watch
        self._start = begun
        self._hardware: str | None = None
        self._flop_count = 0
        self._kernels: dict[str, tuple[float, Actions]] = {}  # by machine code: its quickest figure
        self._failure: str | None = None

    def result(self, client: Client | _Database, confirm: bool) -> SearchResult:
        self._client = client
        make_job(self._jobs([(0, [])])[0])
        while batch := self._ask():
            self._measure(batch)
            go_on = None if self._watch is None else self._watch(self._progress())
            if go_on is not None and not go_on:
                break
        took = time.monotonic() - self._start
        found = self._searcher
        actions, best_ns, untuned_ns, tree = found.best_actions, found.best_cost, found.start_cost, found.best_tree
        confirmed_ns, confirmations, disturbed = None, 0, False
        if confirm and actions is not None:
            confirmed, again_ns, confirmations = self._confirmed()
            untuned_ns = again_ns or untuned_ns
            if confirmed is not None:
                confirmed_ns, best_ns, actions, disturbed = confirmed
                tree = str(make_job({**self._fields, "actions": actions}).tree)
        return SearchResult(self._fields.get("benchmark") or self._fields["ir"], actions, best_ns, confirmed_ns, untuned_ns,
                            self._flop_count, found.evaluations, found.without_figure, took,
                            [CurvePoint(*point) for point in found.curve], tree, self._failure if best_ns is None else None,
                            confirmations, disturbed)

    def _progress(self) -> Progress:
        found = self._searcher
        return Progress(found.evaluations, time.monotonic() - self._start, found.best_actions, found.best_cost,
                        self._flop_count)

    def _ask(self) -> list[tuple[int, Actions]]:
        most = self._in_flight
        if self._seconds is not None:
            took = time.monotonic() - self._start
            if took >= self._seconds:
                return []
            if self._searcher.evaluations:
                most = min(most, max(1, self._searcher.most_under_way(self._seconds, took)))
        if self._evaluations is not None:
            most = min(most, self._evaluations - self._searcher.evaluations)
        return self._searcher.ask(most) if most > 0 else []

    def _measure(self, batch: list[tuple[int, Actions]]) -> None:
        numbers, actions = [number for number, _ in batch], [each for _, each in batch]
        figures = []
        for each, outcome in zip(actions, conclusive_outcomes(self._client, self._jobs(batch))):
            figure = self._figure(outcome)
            figures.append(figure)
            if figure is not None:
                found = (figure, each)
                self._kernels[outcome.code_hash] = min(found, self._kernels.get(outcome.code_hash, found))
        self._searcher.tell(numbers, figures, time.monotonic() - self._start)
        if self._learn is not None:
            self._learn(actions, figures)

    def _jobs(self, batch: list[tuple[int, Actions]]) -> list[dict[str, Any]]:
        fields = dict(self._fields)
        fields.setdefault("cut_above_ns", int(self._searcher.cut_above(self._cut_factor)))
        return [{**fields, "actions": actions} for _, actions in batch]

    def _figure(self, outcome: Outcome) -> float | None:
        if not outcome.ok or outcome.grade == "D":
            self._failure = "grade D" if outcome.ok else f"{outcome.status}: {outcome.message}"
            return None
        if self._hardware is None:
            self._hardware, self._flop_count = outcome.hardware_class, outcome.flop_count
        return outcome.elapsed_ns if outcome.hardware_class == self._hardware else None

    def _confirmed(self) -> tuple[tuple[float, float, Actions, bool] | None, float | None, int]:
        """The best by new figures (the new one, the first one, its actions, whether it was disturbed), a new figure of the
        untuned schedule, and how many measurements that took."""
        quickest = sorted(self._kernels.values())[:_CONFIRMED]
        fields = {name: value for name, value in self._fields.items() if name != "cut_above_ns"}
        turns = Turns([{**fields, "actions": actions, "fresh": True} for actions in ([], *(actions for _, actions in quickest))],
                      lambda _, outcome: self._figure(outcome) is not None)
        turns.measure(self._client.evaluate_many)
        new = []
        for outcomes in turns.outcomes:
            figures = [(figure, each.grade) for each in outcomes if (figure := self._figure(each)) is not None]
            median = statistics.median(figures_that_count(figures)) if figures else None
            new.append((median, not any(grade in "AB" for _, grade in figures)))
        found = [(median, *kernel, disturbed) for (median, disturbed), kernel in zip(new[1:], quickest) if median is not None]
        return min(found, default=None), new[0][0], sum(map(len, turns.outcomes))


class _PassRun(_Run):
    _oz_instructions: float | None = None

    def result(self, client: Client | _Database, confirm: bool) -> PassSearchResult:
        found = super().result(client, False)
        return PassSearchResult(found.benchmark, found.actions, found.best_ns, found.untuned_ns, self._oz_instructions,
                                found.evaluations, found.without_figure, found.seconds,
                                [(point.evaluations, point.seconds, point.best_ns) for point in found.curve], found.failure)

    def _jobs(self, batch: list[tuple[int, Actions]]) -> list[dict[str, Any]]:
        return [{**self._fields, "passes": passes, "observe": ["IrInstructionCount", "IrInstructionCountOz"]}
                for _, passes in batch]

    def _figure(self, outcome: Outcome) -> float | None:
        if not outcome.ok:
            self._failure = f"{outcome.status}: {outcome.message}"
            return None
        self._oz_instructions = outcome.observed["IrInstructionCountOz"]
        return outcome.observed["IrInstructionCount"]


def conclusive_outcomes(client: Client | _Database, jobs: Sequence[dict[str, Any]]) -> list[Outcome]:
    """In the order of the jobs. What says nothing about a schedule (grade D, a failure that may pass) is asked for again,
    three times at most; then it is given as it is."""
    outcomes = list(client.evaluate_many(jobs))
    for _ in range(_TRIES - 1):
        again = [place for place, outcome in enumerate(outcomes) if _is_inconclusive(outcome)]
        if not again:
            break
        for place, outcome in zip(again, client.evaluate_many([jobs[place] for place in again])):
            outcomes[place] = outcome
    return outcomes


def _is_inconclusive(outcome: Outcome) -> bool:
    return outcome.grade == "D" if outcome.ok else outcome.retryable
