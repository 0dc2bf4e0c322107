"""Rewards of LLVM passes by name: what a step saved of a size, alone or against a pipeline of -O3 or -Oz."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .spaces import checked_name

_COUNT, _SIZE = "IrInstructionCount", "ObjectTextSizeBytes"


@dataclass(frozen=True)
class PassReward:
    """``of(before, after, start, base)`` of sizes. The first three are the observation ``metric`` before and after the
    step and at the episode's start; the last is the observation ``baseline``, or 0.0 without one."""

    name: str
    metric: str
    baseline: str | None
    of: Callable[[float, float, float, float], float]


def _plain(before: float, after: float, start: float, base: float) -> float:
    return before - after


def _share(before: float, after: float, start: float, base: float) -> float:
    return (before - after) / max(start, 1.0)


def _against(before: float, after: float, start: float, base: float) -> float:
    return (before - after) / max(start - base, 1.0)


def _log(before: float, after: float, start: float, base: float) -> float:
    return math.log(max(before, 1.0) / max(after, 1.0))


PASS_REWARDS = {rule.name: rule for rule in (
    PassReward("IrInstructionCount", _COUNT, None, _plain),
    PassReward("IrInstructionCountNorm", _COUNT, None, _share),
    PassReward("IrInstructionCountLog", _COUNT, None, _log),
    PassReward("IrInstructionCountO3", _COUNT, "IrInstructionCountO3", _against),
    PassReward("IrInstructionCountOz", _COUNT, "IrInstructionCountOz", _against),
    PassReward("ObjectTextSizeBytes", _SIZE, None, _plain),
    PassReward("ObjectTextSizeNorm", _SIZE, None, _share),
    PassReward("ObjectTextSizeO3", _SIZE, "ObjectTextSizeO3", _against),
    PassReward("ObjectTextSizeOz", _SIZE, "ObjectTextSizeOz", _against),
)}


def find_pass_reward(name: str) -> PassReward:
    """LookupError: there is none of this name."""
    return PASS_REWARDS[checked_name("reward", name, PASS_REWARDS)]
