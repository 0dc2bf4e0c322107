"""Measuring: has the tree that is edited timed here and measured by a worker, and keeps what is known of each tree."""

from __future__ import annotations

from collections.abc import Callable

from .._core import LoopTree, Outcome
from .figures import Figures, graded_of
from .inbox import Inbox
from .sources import Sources


class Measuring:
    """One thread owns it; figures arrive by the inbox. ``on_problem`` and ``on_local_problem`` are called with why
    there is none."""

    def __init__(self, sources: Sources, inbox: Inbox, flop_count: int, on_problem: Callable[[str], None],
                 on_local_problem: Callable[[str], None]):
        self._figures: dict[str, Figures] = {}  # by tree key
        self._flop_count = flop_count
        self._on_problem = on_problem
        self._on_local_problem = on_local_problem
        self._local = sources.local(inbox.post(self._on_local)) if sources.local else None
        self._graded = sources.graded(inbox.post(self._on_graded)) if sources.graded else None

    def of(self, key: str) -> Figures:
        return self._figures.setdefault(key, Figures())

    def known(self) -> list[Figures]:
        return list(self._figures.values())

    def forget(self) -> None:
        self._figures.clear()

    def measure(self, tree: LoopTree, threads: int) -> None:
        """This tree instead of the one before. A stored result answers once; what had a figure is measured again."""
        figure = self.of(tree.tree_key)
        for other in self._figures.values():
            other.is_measured_here = other.is_measured = False
        if self._local is not None:
            figure.is_measured_here = True
            self._local.measure(tree, threads)
        if self._graded is not None:
            had_one = figure.graded is not None or bool(figure.graded_failure)
            figure.is_measured = True
            self._graded.measure(tree, threads, fresh=had_one)

    def close(self) -> None:
        for each in (self._local, self._graded):
            if each is not None:
                each.close()

    def _on_local(self, key: str, ns: float | None, failure: str) -> None:
        figure = self.of(key)
        if failure and figure.is_measured_here:  # else another tree is shown
            self._on_local_problem(f"local figure: {failure}")
        figure.is_measured_here = False
        figure.local_gflops = self._flop_count / ns if ns else None
        figure.local_failure = failure

    def _on_graded(self, key: str, outcome: Outcome | None, problem: str) -> None:
        figure = self.of(key)
        figure.is_measured = False
        if outcome is None:
            figure.graded_failure = "no answer"
            self._on_problem(problem)
        elif outcome.ok:
            figure.graded, figure.graded_failure = graded_of(outcome), ""
        else:
            figure.graded_failure = outcome.status
            self._on_problem(f"{outcome.status}: {outcome.message}")
