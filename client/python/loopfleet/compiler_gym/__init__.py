"""Runs code written for CompilerGym after one changed line:
``import loopfleet.compiler_gym as compiler_gym``.

The environments are those of loopfleet.envs with CompilerGym's older interface: ``reset`` returns
only the observation; ``step`` and ``multistep`` return ``(observation, reward, done, info)``.
``.datasets``, ``.wrappers``, ``.leaderboard`` and ``.util`` have those of CompilerGym's parts that
programs for loop_tool and LLVM use.
"""

from __future__ import annotations

import importlib
from typing import Any

from .. import _core
from ..envs import LLVM_ENVIRONMENTS, WalkEnv
from .datasets import Benchmark as Benchmark  # also found here
from .envs import LlvmEnv, LoopTool, LoopTune

CompilerEnv = WalkEnv
_LLVM = {id: fixed for name, fixed in LLVM_ENVIRONMENTS.items()
         for id in (name.replace("LLVM", "llvm"), f"loopfleet/{name}")}
COMPILER_GYM_ENVS = ["loop_tool-v0", "loopfleet/LoopTool-v0", "loopfleet/LoopTune-v0", *_LLVM]


_PARTS = ("leaderboard", "util", "wrappers")  # loaded when they are first used


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def make(id: str, **options: Any) -> LoopTool | LoopTune | LlvmEnv:
    """Like ``compiler_gym.make``; ``options`` are the environment's arguments."""
    if id not in COMPILER_GYM_ENVS:
        raise LookupError(f"unknown environment '{id}'{_core.nearest(id, COMPILER_GYM_ENVS)}; "
                          f"valid: {', '.join(COMPILER_GYM_ENVS)}")
    if id in _LLVM:
        return LlvmEnv(**{**_LLVM[id], **options})
    return LoopTune(**options) if id == "loopfleet/LoopTune-v0" else LoopTool(**options)
