"""RLlib: registers the environments as functions of one dict."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from ray.tune.registry import register_env

from .envs import LLVM_ENVIRONMENTS, LlvmEnv, LoopToolEnv, LoopTuneEnv


def register() -> None:
    """For ``config.environment("loopfleet/LoopTune-v0", env_config={...})``; env_config holds the
    environment's arguments. Each process has its own client; set ``address``, because the
    processes may run on other machines. Arrays of whole numbers become float32, which RLlib's
    networks need."""

    def make(env_class: type, **fixed: Any) -> Any:
        def of(env_config: dict[str, Any]) -> gym.Env:
            env = env_class(**{**fixed, **env_config})
            if isinstance(env.observation_space, gym.spaces.Box) and env.observation_space.dtype.kind == "i":
                return gym.wrappers.DtypeObservation(env, np.float32)
            return env

        return of

    register_env("loopfleet/LoopTune-v0", make(LoopTuneEnv))
    register_env("loopfleet/LoopTool-v0", make(LoopToolEnv))
    for name, fixed in LLVM_ENVIRONMENTS.items():
        register_env(f"loopfleet/{name}", make(LlvmEnv, **fixed))
