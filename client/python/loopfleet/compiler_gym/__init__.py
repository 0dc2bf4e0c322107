"""Runs code written for CompilerGym after one changed line:
``import loopfleet.compiler_gym as compiler_gym``.

The environments are those of loopfleet.envs with CompilerGym's older interface: ``reset`` returns
only the observation; ``step`` and ``multistep`` return ``(observation, reward, done, info)``.
``loopfleet.compiler_gym.wrappers`` and ``.util`` have those of CompilerGym's parts that programs for
loop_tool use.
"""

from __future__ import annotations

from typing import Any

from .. import _core
from ..envs import LoopToolEnv, LoopTuneEnv, WalkEnv

CompilerEnv = WalkEnv


class _OlderContract:
    def reset(self, *arguments: Any, **named: Any) -> Any:
        return super().reset(*arguments, **named)[0]

    def multistep(self, *arguments: Any, **named: Any) -> tuple[Any, Any, bool, dict[str, Any]]:
        """``step`` is a multistep of one action."""
        observation, reward, terminated, truncated, info = super().multistep(*arguments, **named)
        if truncated:
            info["TimeLimit.truncated"] = True
        return observation, reward, terminated or truncated, info


class LoopTool(_OlderContract, LoopToolEnv):
    """CompilerGym's loop_tool environment."""


class LoopTune(_OlderContract, LoopTuneEnv):
    """The LoopTool RL environment, registered with CompilerGym."""


COMPILER_GYM_ENVS = ["loop_tool-v0", "loopfleet/LoopTool-v0", "loopfleet/LoopTune-v0"]


def make(id: str, **options: Any) -> LoopTool | LoopTune:
    """Like ``compiler_gym.make``; ``options`` are the environment's arguments."""
    if id not in COMPILER_GYM_ENVS:
        raise LookupError(f"unknown environment '{id}'{_core.nearest(id, COMPILER_GYM_ENVS)}; "
                          f"valid: {', '.join(COMPILER_GYM_ENVS)}")
    return LoopTune(**options) if id == COMPILER_GYM_ENVS[-1] else LoopTool(**options)
