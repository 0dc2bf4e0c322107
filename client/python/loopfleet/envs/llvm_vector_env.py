"""A vector of LLVM environments: one batch of jobs per step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array

from .._core import counted
from .llvm_env import LlvmEnv
from .pass_episode import PassEpisode
from .pass_error import refuse_failure, refuse_outage
from .vector_env import add_info, final_info, seeds_of
from .walk_env import check_options


class LlvmVectorEnv(VectorEnv):
    """``num_envs`` environments; the jobs of a step are one batch, so passes that they share run once.
    ``options`` are those of LlvmEnv. An episode that is over is reset by the next step, or with "SameStep" by the one
    that ends it."""

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}
    envs: Sequence[LlvmEnv] = ()  # Gymnasium closes them even if the constructor raises

    def __init__(self, num_envs: int = 1, *, autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
                 **options: Any):
        mode = AutoresetMode(autoreset_mode)
        if mode == AutoresetMode.DISABLED:
            raise ValueError("autoreset_mode must be NextStep or SameStep, not Disabled")
        self.metadata = {**type(self).metadata, "autoreset_mode": mode}
        self._same_step = mode == AutoresetMode.SAME_STEP
        # Each environment reads them: what can be read only once becomes a list.
        options = {name: list(value) if isinstance(value, Iterator) else value for name, value in options.items()}
        first = LlvmEnv(**options)
        self.envs = [first, *(LlvmEnv(**{**options, "client": first._client()}) for _ in range(num_envs - 1))]
        self.num_envs = num_envs
        self.single_action_space = first.action_space
        self.single_observation_space = first.observation_space
        self.action_space = gym.spaces.MultiDiscrete([len(first.action_space.names)] * num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._over = np.zeros(num_envs, bool)
        self._ended: list[PassEpisode] = []  # by the last step that ended any; final_obs may name their files
        self._settled: tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]] | None = None  # and not returned yet

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
              ) -> tuple[Any, dict[str, Any]]:
        """``options["benchmark"]``: one, or one for each environment; so ``seed``. PassError: one of the
        programs cannot be had."""
        seeds = seeds_of(seed, self.num_envs)
        check_options(options or {}, ("benchmark",))
        each = (options or {}).get("benchmark")
        if not isinstance(each, (list, tuple)):
            each = [each] * self.num_envs
        if len(each) != self.num_envs:
            raise ValueError(f"{counted(len(each), 'benchmark', 'benchmarks')} for "
                             f"{counted(self.num_envs, 'environment', 'environments')}")
        for place, env in enumerate(self.envs):
            gym.Env.reset(env, seed=seeds[place])
            env._choose({}, each[place])
        self._begin(range(self.num_envs))
        self._over[:] = False
        self._settled = None
        return self._observations(), self._infos()

    def action_masks(self) -> np.ndarray:
        """Bool, num_envs x actions; see LlvmEnv."""
        return np.stack([env.action_masks() for env in self.envs])

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """PassError, or what an outage raises: nothing is lost, and the same step may be tried again."""
        if len(actions) != self.num_envs:
            raise ValueError(f"{counted(len(actions), 'action', 'actions')} for "
                             f"{counted(self.num_envs, 'environment', 'environments')}")
        if self._settled is None:
            self._settled = self._settle(actions)
        rewards, terminated, truncated, info = self._settled
        if self._same_step and self._over.any():
            if "final_obs" not in info:
                final = [env._observation() if over else None for env, over in zip(self.envs, self._over)]
                info.update(final_info(final, self._infos(), self._over))
                self._keep_ended()
            over = np.flatnonzero(self._over)
            for place in over:
                self.envs[place]._choose({})
            self._begin(over)
            self._over[:] = False
        observations = self._observations()
        self._settled = None
        return observations, rewards, terminated, truncated, {**self._infos(), **info}

    def _settle(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Runs the passes, and the programs of the episodes that the step before ended."""
        rewards = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, bool)
        truncated = np.zeros(self.num_envs, bool)
        info: dict[str, Any] = {}
        renewed = np.flatnonzero(self._over)
        for place in renewed:
            self.envs[place]._choose({})
        going = np.flatnonzero(~self._over)
        flags = {place: [self.envs[place]._flag(actions[place])] for place in going}
        jobs = [self.envs[place]._job(self.envs[place]._in_episode().passes + flags[place], self.envs[place]._wanted())
                for place in going]
        for place in renewed:
            self.envs[place]._end_episode()
        jobs += [self.envs[place]._first_job() for place in renewed]
        outcomes = self.envs[0]._evaluate(jobs)
        for outcome in outcomes[:len(going)]:
            refuse_outage(outcome)
        for outcome in outcomes[len(going):]:
            refuse_failure(outcome)
        for place, outcome in zip(going, outcomes):
            rewards[place], terminated[place], told = self.envs[place]._settle(flags[place], outcome)
            if outcome.ok:
                self.envs[place]._see_default_reward()
            truncated[place] = self.envs[place]._is_over() and not terminated[place]
            add_info(info, {key: told[key] for key in ("action_had_no_effect", "error_type", "error_details")
                            if key in told}, place, self.num_envs)
        for place, outcome in zip(renewed, outcomes[len(going):]):
            self.envs[place]._start(outcome)
        self._over = terminated | truncated
        return rewards, terminated, truncated, info

    def close_extras(self, **kwargs: Any) -> None:
        for env in self.envs:
            env.close()
        for episode in self._ended:
            episode.remove_files()

    def _keep_ended(self) -> None:
        for episode in self._ended:
            episode.remove_files()
        over = [env for env, is_over in zip(self.envs, self._over) if is_over]
        self._ended = [env._in_episode() for env in over]
        for env in over:
            env._episode = None

    def _begin(self, places: Iterable[int]) -> None:
        places = list(places)
        for place in places:
            self.envs[place]._end_episode()
        outcomes = self.envs[0]._evaluate([self.envs[place]._first_job() for place in places])
        for outcome in outcomes:
            refuse_failure(outcome)
        for place, outcome in zip(places, outcomes):
            self.envs[place]._start(outcome)

    def _infos(self) -> dict[str, Any]:
        each = [env._info() for env in self.envs]
        info: dict[str, Any] = {}
        for key in ("action_mask", "passes", "benchmark", "baseline_degenerate"):
            if all(key in one for one in each):
                info[key] = np.array([one[key] for one in each], object if key == "benchmark" else None)
                info[f"_{key}"] = np.ones(self.num_envs, bool)
        return info

    def _observations(self) -> Any:
        space = self.single_observation_space
        return concatenate(space, [env._observation() for env in self.envs], create_empty_array(space, self.num_envs))
