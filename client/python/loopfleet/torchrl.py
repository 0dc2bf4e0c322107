"""TorchRL: its Gymnasium wrapper expects the attribute ``reward_space`` to be a spec; here it is a
name, as in CompilerGym."""

from __future__ import annotations

from typing import Any

from torchrl.envs import GymWrapper


class LoopfleetEnv(GymWrapper):
    """``LoopfleetEnv(loopfleet.envs.LoopTuneEnv(...))``."""

    def _reward_space(self, env: Any) -> None:
        return None
