"""Rewards of steps. A reward compares the figure of the tree after the step with the one before
it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .._core import JobError, Outcome
from .spaces import checked_name


@dataclass(frozen=True)
class Reward:
    """``value(before, after, peak_gflops)`` of two measured outcomes."""

    name: str
    description: str
    value: Callable[[Outcome, Outcome, float], float]
    needs_peak: bool = False


def _gain(before: Outcome, after: Outcome, peak: float) -> float:
    return after.gflops - before.gflops


def _normalized_gain(before: Outcome, after: Outcome, peak: float) -> float:
    return (after.gflops - before.gflops) / peak


def _log_speedup(before: Outcome, after: Outcome, peak: float) -> float:
    return math.log(before.elapsed_ns / after.elapsed_ns)


REWARDS = {reward.name: reward for reward in (
    Reward("gflops", "change in GFLOP/s", _gain),
    Reward("flops", "the same by CompilerGym's name for it", _gain),
    Reward("gflops_normalized", "change in GFLOP/s as a share of the threads' measured peak", _normalized_gain,
           needs_peak=True),
    Reward("log_speedup", "natural logarithm of the time before over the time after", _log_speedup),
)}


def find_reward(name: str | None) -> Reward | None:
    return None if name is None else REWARDS[checked_name("reward space", name, REWARDS)]


def unknown_peak() -> JobError:
    return JobError("the worker did not say its device's peak: give peak_gflops, or another reward space")
