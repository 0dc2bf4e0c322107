"""Episode: one walk, the figures of its trees, and the rewards of its steps. Used by the
environment and the vector environment. Belongs to one thread."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any

from .._core import Job, Outcome, Walk, failed_outcome
from ..rows import NO_VERDICT
from .rewards import Reward, unknown_peak

NOTHING, CURSOR, TREE = 0, 1, 2  # the effect of a step

_RETRIES = 2  # of a retryable failure, such as UNSTABLE_TIMING on a busy host, or a figure of grade D
# Failures of the fleet, its operator, the store, or a walk that is too long for a job.
_NOT_THE_SCHEDULES = NO_VERDICT | {"STORAGE_CORRUPT", "LIMIT_ACTIONS"}
_numbers = itertools.count()
_process = os.urandom(6).hex()


@dataclass
class Verdict:
    """The reward of one step and whether it ends the episode."""

    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    failure: Outcome | None = None

    def tell(self, info: dict[str, Any]) -> None:
        if self.failure is not None:
            info["error_type"] = self.failure.status
            info["error_details"] = self.failure.message


def late() -> Verdict:
    return Verdict(truncated=True, failure=failed_outcome("EXPIRED", "no figure within the environment's timeout"))


def conclusive(outcome: Outcome) -> Outcome:
    """The outcome, or UNSTABLE_TIMING instead of a figure of grade D: a difference of such figures says nothing."""
    if outcome.grade != "D":
        return outcome
    return failed_outcome("UNSTABLE_TIMING", "a figure of grade D: no more than an order of magnitude")


@dataclass
class Measuring:
    """How trees are measured."""

    client: Any = None  # anything with submit_job(job) -> Future[Outcome]
    fields: dict[str, Any] = field(default_factory=dict)  # arguments of Walk.job()
    peak_gflops: float = 0.0  # of all threads; 0: as measured by the worker

    def peak_of(self, outcome: Outcome) -> float:
        peak = self.peak_gflops or outcome.peak_gflops * self.fields.get("threads", 1)
        if peak <= 0:
            raise unknown_peak()
        return peak


class Figure:
    """The figure of one tree: its job, and a future of the outcome."""

    __slots__ = ("future", "job", "retries_left")

    def __init__(self, job: Job, future: Future[Outcome]):
        self.job = job
        self.future = future
        self.retries_left = _RETRIES

    @property
    def lost(self) -> bool:
        """True if it will get no outcome, because the coordinator was unreachable."""
        return self.future.done() and self.future.exception() is not None

    def wants_retry(self) -> bool:
        if not self.retries_left or self.future.exception() is not None:
            return False
        outcome = conclusive(self.future.result())  # grade D answers no later job, so asking measures again
        return not outcome.ok and outcome.retryable

    def retry(self, client: Any) -> None:
        self.retries_left -= 1
        self.ask(client)

    def ask(self, client: Any) -> None:
        self.future = client.submit_job(self.job)


def ask_again(figures: Iterable[Figure], client: Any) -> bool:
    """Retries the figures that failed with a retryable code, or are of grade D; all must have arrived.
    Whether there was one."""
    again = [figure for figure in dict.fromkeys(figures) if figure.wants_retry()]
    for figure in again:
        figure.retry(client)
    return bool(again)


def arrive(figures: Sequence[Figure], client: Any, deadline: float) -> bool:
    """Waits for figures, and asks again for those lost in an outage. False: they did not arrive in
    time. Raises the client's exceptions."""
    for figure in dict.fromkeys(figures):
        if figure.lost:
            figure.ask(client)
    while True:
        if wait([figure.future for figure in figures], max(0.0, deadline - time.monotonic())).not_done:
            return False
        if not ask_again(figures, client):
            break
    for figure in figures:
        figure.future.result()
    return True


class Episode:
    """``walk`` may be stepped from outside (step_many); the effect is then passed to stepped()."""

    __slots__ = ("affinity", "_key", "actions", "before", "figures", "measuring", "reward_rule", "total_reward",
                 "walk", "wrapped")

    def __init__(self, walk: Walk, measuring: Measuring, reward_rule: Reward | None):
        self.walk = walk
        self.measuring = measuring
        self.reward_rule = reward_rule
        self.begin()

    def begin(self) -> None:
        """Starts an episode; the walk must be at its start. With a reward, call set_baseline()
        next."""
        self.actions: list[int] = []
        self.total_reward = 0.0
        self.wrapped = 0.0  # what a wrapper adds to it
        self.figures: dict[bytes, Figure] = {}
        self.before: Figure | None = None  # the figure that the next reward is compared with
        # One worker measures all figures of an episode, so that they are comparable.
        self.affinity = f"{_process}-{next(_numbers)}"
        self._key: bytes | None = None

    def fork(self) -> Episode:
        other = Episode.__new__(Episode)
        other.walk = self.walk.copy()
        other.measuring = self.measuring
        other.reward_rule = self.reward_rule
        other.actions = self.actions.copy()
        other.total_reward = self.total_reward
        other.wrapped = self.wrapped
        other.figures = self.figures.copy()
        other.before = self.before
        other.affinity = self.affinity
        other._key = self._key
        return other

    def key(self) -> bytes:
        """The key of the current tree."""
        if self._key is None:
            self._key = self.walk.tree_key
        return self._key

    def missing_job(self) -> Job | None:
        """The job of the current tree, or None if its figure is known or on its way."""
        known = self.figures.get(self.key())
        if known is not None and not known.lost:
            return None
        return self.walk.job(affinity=self.affinity, **self.measuring.fields)

    def adopt(self, job: Job, future: Future[Outcome]) -> None:
        """Stores the future of the job that missing_job() returned."""
        known = self.figures.get(self.key())
        if known is None:
            self.figures[self.key()] = Figure(job, future)
        else:
            known.future = future  # the last one was lost

    def figure(self) -> Figure:
        """The figure of the current tree; submits its job if needed."""
        job = self.missing_job()
        if job is not None:
            self.adopt(job, self.measuring.client.submit_job(job))
        return self.figures[self.key()]

    def set_baseline(self) -> None:
        """Makes the current tree the baseline of the next reward, and requests its figure."""
        self.before = self.figure()

    def change_reward(self, reward_rule: Reward | None) -> None:
        """Changes the reward rule; the current tree becomes the baseline."""
        before = None if reward_rule is None else self.figure()
        self.reward_rule, self.before, self.total_reward, self.wrapped = reward_rule, before, 0.0, 0.0

    def stepped(self, action: int, effect: int) -> bool:
        """Records a step. Whether its reward needs a figure: a step that leaves the tree unchanged
        earns 0."""
        self.actions.append(action)
        if effect == TREE:
            self._key = None
        return self.reward_rule is not None and effect == TREE

    def pair(self) -> tuple[Figure, Figure]:
        """The two figures that judge() compares; they may be the same, as they are without a reward
        rule. The current tree's must have been requested."""
        after = self.figures[self.key()]
        return self.before or after, after

    def settle(self, client: Any, deadline: float) -> Verdict:
        """Waits for the figures, then calls judge()."""
        return self.judge() if arrive(self.pair(), client, deadline) else late()

    def judge(self) -> Verdict:
        """Computes the reward of a step, 0 without a reward rule. Its figures must have arrived.

        A failure of the schedule itself (it does not compile, runs too long, gives a wrong result
        ...) terminates the episode and takes back its rewards, as in CompilerGym. Any other
        failure truncates it without a reward. Raises the client's exceptions (an unreachable
        coordinator).
        """
        first, second = self.pair()
        before, after = conclusive(first.future.result()), conclusive(second.future.result())
        if self.reward_rule is not None and not before.ok:
            return Verdict(truncated=True, failure=before)
        if not after.ok:
            return self._failed(after)
        if self.reward_rule is None:
            return Verdict()
        peak = self.measuring.peak_of(after) if self.reward_rule.needs_peak else 0.0
        value = self.reward_rule.value(before, after, peak)
        self.before = second
        self.total_reward += value
        return Verdict(reward=value)

    def _failed(self, failure: Outcome) -> Verdict:
        if failure.retryable or failure.status in _NOT_THE_SCHEDULES:
            return Verdict(truncated=True, failure=failure)
        lost, self.total_reward = -self.total_reward, 0.0
        return Verdict(reward=lost, terminated=True, failure=failure)
