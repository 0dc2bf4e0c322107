"""Stable-Baselines3: adapts WalkVectorEnv and LlvmVectorEnv to its VecEnv interface."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import VecEnv

from .envs import LlvmEnv, LlvmVectorEnv, LoopTuneEnv, WalkEnv, WalkVectorEnv


class Sb3VecEnv(VecEnv):
    """``PPO("MlpPolicy", Sb3VecEnv(16, env_class=LoopTuneEnv, …))``; or LlvmEnv with an array as its observation.
    ``action_masks`` serves sb3-contrib's MaskablePPO. Infos of ended episodes have what SB3's Monitor adds, so it logs
    ``rollout/ep_rew_mean``."""

    def __init__(self, num_envs: int, *, env_class: type[WalkEnv] | type[LlvmEnv] = LoopTuneEnv, **options: Any):
        if options.get("tensors", "numpy") != "numpy":
            raise ValueError("Stable-Baselines3 takes arrays: leave out tensors=")
        vector = LlvmVectorEnv if env_class is LlvmEnv else partial(WalkVectorEnv, env_class=env_class)
        self._envs = vector(num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **options)
        self._actions: np.ndarray | None = None
        self._returns, self._lengths = np.zeros(num_envs), np.zeros(num_envs, int)
        self._since = time.monotonic()
        super().__init__(num_envs, self._envs.single_observation_space, self._envs.single_action_space)

    def reset(self) -> np.ndarray:
        """``set_options`` before it: the options of the vector's reset, for this reset."""
        seeds = self._seeds if any(seed is not None for seed in self._seeds) else None
        options = {name: [one.get(name) for one in self._options] for each in self._options for name in each}
        observations, info = self._envs.reset(seed=seeds, options=options)
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{key: info[key][row] for key in ("action_mask", "benchmark")} for row in range(self.num_envs)]
        self._returns[:], self._lengths[:] = 0, 0
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observations, rewards, terminated, truncated, info = self._envs.step(self._actions)
        over = terminated | truncated
        self._returns += rewards
        self._lengths += 1
        infos: list[dict[str, Any]] = []
        for row in range(self.num_envs):
            one: dict[str, Any] = {"action_mask": info["action_mask"][row],
                                   "action_had_no_effect": bool(info["action_had_no_effect"][row]),
                                   "benchmark": (info["final_info"] if over[row] else info)["benchmark"][row],
                                   "TimeLimit.truncated": bool(truncated[row] and not terminated[row])}
            if over[row]:
                one["terminal_observation"] = info["final_obs"][row]
                self.reset_infos[row] = {key: info[key][row] for key in ("action_mask", "benchmark")}
                one["episode"] = {"r": float(self._returns[row]), "l": int(self._lengths[row]),
                                  "t": round(time.monotonic() - self._since, 6)}
            if "error_type" in info and info["error_type"][row] is not None:
                one["error_type"] = info["error_type"][row]
                one["error_details"] = info["error_details"][row]
            infos.append(one)
        self._returns[over], self._lengths[over] = 0, 0
        return observations, rewards.astype(np.float32), over, infos

    def close(self) -> None:
        self._envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        value = getattr(self._envs, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(f"'{attr_name}' cannot be set: give it to the constructor")

    def env_method(self, method_name: str, *arguments: Any, indices: Any = None, **named: Any) -> list[Any]:
        if method_name != "action_masks":
            raise AttributeError(f"no method '{method_name}' of single environments; there is action_masks")
        masks = self._envs.action_masks()
        return [masks[row] for row in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        return super().seed(seed)
