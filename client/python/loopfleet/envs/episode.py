"""Episode: one walk, the figures of the trees it passes, and what its steps earn. Both the environment
and the vector environment are made of it. Belongs to one thread."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any

from .._core import Job, Outcome, Walk, failed_outcome
from .rewards import Reward, unknown_peak

NOTHING, CURSOR, TREE = 0, 1, 2  # what a step changed

_RETRIES = 2  # of a failure that is nobody's fault, for example UNSTABLE_TIMING on a busy host
_numbers = itertools.count()
_process = os.urandom(6).hex()


@dataclass
class Verdict:
    """Of one step."""

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


@dataclass
class Measuring:
    """How figures are asked for."""

    client: Any = None  # anything with submit_job(job) -> Future[Outcome]
    fields: dict[str, Any] = field(default_factory=dict)  # of Walk.job()
    peak_gflops: float = 0.0  # 0: what the worker says


class Figure:
    """Of one tree: the question, and the answer when it is there."""

    __slots__ = ("future", "job", "retries_left")

    def __init__(self, job: Job, future: Future[Outcome]):
        self.job = job
        self.future = future
        self.retries_left = _RETRIES

    @property
    def lost(self) -> bool:
        """It has no outcome and will get none: the coordinator was out of reach."""
        return self.future.done() and self.future.exception() is not None

    def wants_retry(self) -> bool:
        if not self.retries_left or self.future.exception() is not None:
            return False
        outcome = self.future.result()
        return not outcome.ok and outcome.retryable

    def retry(self, client: Any) -> None:
        self.retries_left -= 1
        self.ask(client)

    def ask(self, client: Any) -> None:
        self.future = client.submit_job(self.job)


def ask_again(figures: Iterable[Figure], client: Any) -> bool:
    """Whether a figure, all of which are there, failed by nobody's fault and was asked for anew."""
    again = [figure for figure in dict.fromkeys(figures) if figure.wants_retry()]
    for figure in again:
        figure.retry(client)
    return bool(again)


def arrive(figures: Sequence[Figure], client: Any, deadline: float) -> bool:
    """Waits for figures, those that were lost in an outage before included; False: they did not come in time.
    Exceptions of the client are raised."""
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
    """``walk`` may be stepped by others (step_many): then stepped() is told the effect."""

    __slots__ = ("affinity", "_key", "actions", "before", "figures", "measuring", "reward_rule", "total_reward",
                 "walk")

    def __init__(self, walk: Walk, measuring: Measuring, reward_rule: Reward | None):
        self.walk = walk
        self.measuring = measuring
        self.reward_rule = reward_rule
        self.begin()

    def begin(self) -> None:
        """The walk stands at its start. With a reward, the baseline's figure is wanted first."""
        self.actions: list[int] = []
        self.total_reward = 0.0
        self.figures: dict[bytes, Figure] = {}
        self.before: Figure | None = None  # the last one that a reward can be compared with
        # All figures of an episode come from one worker, so that a reward compares like with like.
        self.affinity = f"{_process}-{next(_numbers)}"
        self._key: bytes | None = None

    def fork(self) -> Episode:
        other = Episode.__new__(Episode)
        other.walk = self.walk.copy()
        other.measuring = self.measuring
        other.reward_rule = self.reward_rule
        other.actions = self.actions.copy()
        other.total_reward = self.total_reward
        other.figures = self.figures.copy()
        other.before = self.before
        other.affinity = self.affinity
        other._key = self._key
        return other

    def key(self) -> bytes:
        """Of the tree as it is."""
        if self._key is None:
            self._key = self.walk.tree_key
        return self._key

    def missing_job(self) -> Job | None:
        """The job of the tree as it is, unless its figure is known or on its way."""
        known = self.figures.get(self.key())
        if known is not None and not known.lost:
            return None
        return self.walk.job(affinity=self.affinity, **self.measuring.fields)

    def adopt(self, job: Job, future: Future[Outcome]) -> None:
        """The answer to missing_job()."""
        known = self.figures.get(self.key())
        if known is None:
            self.figures[self.key()] = Figure(job, future)
        else:
            known.future = future  # it was lost

    def figure(self) -> Figure:
        """Of the tree as it is; asked for if need be."""
        job = self.missing_job()
        if job is not None:
            self.adopt(job, self.measuring.client.submit_job(job))
        return self.figures[self.key()]

    def set_baseline(self) -> None:
        """Rewards of the next steps compare with the tree as it is, whose figure is asked for."""
        self.before = self.figure()

    def change_reward(self, reward_rule: Reward | None) -> None:
        """From the tree as it is on."""
        before = None if reward_rule is None else self.figure()
        self.reward_rule, self.before, self.total_reward = reward_rule, before, 0.0

    def stepped(self, action: int, effect: int) -> bool:
        """Whether the step's reward needs a figure; a step that leaves the tree alone earns nothing."""
        self.actions.append(action)
        if effect == TREE:
            self._key = None
        return self.reward_rule is not None and effect == TREE

    def pair(self) -> tuple[Figure, Figure]:
        """What judge() compares, once the figure of the tree as it is has been asked for. It may be one figure."""
        assert self.before is not None
        return self.before, self.figures[self.key()]

    def settle(self, client: Any, deadline: float) -> Verdict:
        """judge(), once the figures have arrived."""
        return self.judge() if arrive(self.pair(), client, deadline) else late()

    def judge(self) -> Verdict:
        """After a step that changed the tree, once its figures are there.

        A failure that is the schedule's own (it does not compile, runs too long, computes nonsense ...) ends
        the episode and takes back what it earned, as CompilerGym does. One that is nobody's fault cuts it
        short without a reward. Exceptions of the client (an unreachable coordinator) are raised.
        """
        assert self.reward_rule is not None
        first, second = self.pair()
        before, after = first.future.result(), second.future.result()
        if not before.ok:
            return Verdict(truncated=True, failure=before)
        if not after.ok and after.retryable:
            return Verdict(truncated=True, failure=after)
        if not after.ok:
            lost, self.total_reward = -self.total_reward, 0.0
            return Verdict(reward=lost, terminated=True, failure=after)
        peak = 0.0
        if self.reward_rule.needs_peak:
            peak = self.measuring.peak_gflops or after.peak_gflops
            if peak <= 0:
                raise unknown_peak()
        value = self.reward_rule.value(before, after, peak)
        self.before = second
        self.total_reward += value
        return Verdict(reward=value)
