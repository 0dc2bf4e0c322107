"""What agents have in common: how they see observations, the curve of what they return, and a
policy's type."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .errors import ModelError

# Number of an action, given the observation float32[features] and which actions are legal [actions].
Policy = Callable[[np.ndarray, np.ndarray, np.random.Generator], int]


def squash(observations: np.ndarray) -> np.ndarray:
    """float32, of the same shape: features count loops, sizes and strides, from 0 to a million."""
    observations = np.asarray(observations)  # an environment may give torch's
    return (np.sign(observations) * np.log1p(np.abs(observations))).astype(np.float32)


def need_legal(masks: Any) -> np.ndarray:
    """Masks [rows, actions] as bool. ModelError: a row allows nothing."""
    masks = np.asarray(masks, bool)
    stuck = np.flatnonzero(~masks.any(-1))
    if stuck.size:
        raise ModelError(f"no action is legal in row {stuck[0]} of the masks: an environment whose actions are all illegal "
                         "has to end the episode, or to offer other actions")
    return masks


def random_policy(observation: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(need_legal(mask[None])[0])))


def random_actions(masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """int64[environments]: a legal action of each, for masks [environments, actions]."""
    return np.argmax(rng.random(masks.shape) * masks, axis=1)


def spaces_of(envs: Any) -> tuple[int, list[str]]:
    """(numbers in an observation, names of the actions) of a vector environment. ModelError: it is none."""
    if not hasattr(envs, "single_observation_space"):
        raise ModelError(f"an agent trains on a vector of environments, not on {type(envs).__name__}: make one with "
                         "WalkVectorEnv or gym.make_vec")
    return envs.single_observation_space.shape[0], envs.single_action_space.names


def need_same_step(envs: Any) -> None:
    """ModelError: the environments start a new episode not in the step that ends one, but later; the step between would
    be learned as a part of an episode."""
    mode = (getattr(envs, "metadata", None) or {}).get("autoreset_mode")
    name = getattr(mode, "value", mode)
    if name not in (None, "SameStep"):
        raise ModelError(f"training needs environments that reset in the same step, not {name}: make them with "
                         "autoreset_mode=AutoresetMode.SAME_STEP")


def unmeasured(info: Mapping[str, Any], truncated: np.ndarray) -> np.ndarray:
    """bool[environments]: steps without a figure for no fault of the schedule. What they earned is not known, so nothing
    is learned from them. ``info``, ``truncated``: of a vector's step; Gymnasium's own vectors put it in final_info."""
    return truncated & info.get("_error_type", info.get("final_info", {}).get("_error_type", False))


class Returns:
    """Of the episodes of ``num_envs`` environments, as training goes on."""

    def __init__(self, num_envs: int, on_mark: Callable[[str], Any] | None = None):
        self.steps = 0
        self.curve: list[tuple[int, float]] = []  # steps, mean of the last 100 episodes
        self._recent: deque[float] = deque(maxlen=100)
        self._running = np.zeros(num_envs)
        self._since = time.monotonic()
        self._on_mark = on_mark

    def add(self, rewards: np.ndarray, over: np.ndarray) -> None:
        """One step of all environments."""
        self._running += rewards
        self.add_episodes(self._running[over].tolist(), len(rewards))
        self._running[over] = 0

    def add_episodes(self, returns: list[float], steps: int) -> None:
        """Episodes that ended within ``steps`` steps."""
        self._recent.extend(returns)
        self.steps += steps

    def mark(self, said: str = "") -> None:
        """A point of the curve."""
        if self._recent:
            self.curve.append((self.steps, float(np.mean(self._recent))))
            if self._on_mark is not None:
                self._on_mark(f"{self.seconds:5.0f} s, {self.steps:6} steps{said}: return {self.curve[-1][1]:.3f}")

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._since
