"""RLlib: registers the environments as functions of one dict."""

from __future__ import annotations

from typing import Any

from ray.tune.registry import register_env

from .envs import LoopToolEnv, LoopTuneEnv


def register() -> None:
    """For ``config.environment("loopfleet/LoopTune-v0", env_config={...})``; env_config holds the
    environment's arguments. Each process has its own client; set ``address``, because the
    processes may run on other machines."""

    def make(env_class: type) -> Any:
        return lambda env_config: env_class(**dict(env_config))

    register_env("loopfleet/LoopTune-v0", make(LoopTuneEnv))
    register_env("loopfleet/LoopTool-v0", make(LoopToolEnv))
