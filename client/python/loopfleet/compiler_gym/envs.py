"""CompilerGym's environments with the older interface: ``from loopfleet.compiler_gym.envs import LlvmEnv``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import envs


class OlderContract:
    """Before an environment's class: ``reset`` returns only the observation, ``multistep`` four values."""

    def reset(self, *arguments: Any, **named: Any) -> Any:
        return super().reset(*arguments, **named)[0]

    def multistep(self, *arguments: Any, **named: Any) -> tuple[Any, Any, bool, dict[str, Any]]:
        return _older(super().multistep(*arguments, **named))


class LoopTool(OlderContract, envs.LoopToolEnv):
    """CompilerGym's loop_tool environment."""


class LoopTune(OlderContract, envs.LoopTuneEnv):
    """The LoopTool RL environment, registered with CompilerGym."""


class LlvmEnv(OlderContract, envs.LlvmEnv):
    """CompilerGym's LLVM environment. In CompilerGym's own graphs every control edge has the position 0:
    ``programl_control_positions="zero"``."""

    @property
    def observation_space(self) -> Any:
        """None: reset and step give None as the observation."""
        return None if self.observation_space_name is None else super().observation_space

    @observation_space.setter
    def observation_space(self, name: str | None) -> None:
        envs.LlvmEnv.observation_space.fset(self, name)

    def step(self, action: Any, observation_spaces: Sequence[str] | None = None,
             reward_spaces: Sequence[str] | None = None) -> tuple[Any, Any, bool, dict[str, Any]]:
        return _older(super().step(action, observation_spaces, reward_spaces))

    def multistep(self, actions: Any, observation_spaces: Sequence[str] | None = None,
                  reward_spaces: Sequence[str] | None = None) -> tuple[Any, Any, bool, dict[str, Any]]:
        return self.step(list(actions), observation_spaces, reward_spaces)


def _older(result: tuple[Any, Any, bool, bool, dict[str, Any]]) -> tuple[Any, Any, bool, dict[str, Any]]:
    observation, reward, terminated, truncated, info = result
    if truncated:
        info["TimeLimit.truncated"] = True
    return observation, reward, terminated or truncated, info
