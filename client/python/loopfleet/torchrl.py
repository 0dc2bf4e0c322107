"""TorchRL: its wrapper of Gymnasium's environments takes an attribute ``reward_space`` for a spec; ours is a name,
as in CompilerGym."""

from __future__ import annotations

from typing import Any

from torchrl.envs import GymWrapper


class LoopfleetEnv(GymWrapper):
    """``LoopfleetEnv(loopfleet.envs.LoopTuneEnv(...))``."""

    def _reward_space(self, env: Any) -> None:
        return None
