"""A vector of environments: one batch of jobs per step, and EnvPool's send and recv."""

from __future__ import annotations

import itertools
import numbers
import queue
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from .. import _core
from .._core import Walk, counted
from .datasets import draw
from .environments import LoopTuneEnv
from .episode import NOTHING, Episode, Verdict, arrive, ask_again, late
from .spaces import ROW_WIDTH, whole_numbers
from .walk_env import MEASURED, Start, WalkEnv, check_options

_OPTIONS = ("reset_mask", "benchmark", "merge_all_first", "start_cursor")
_NO_ACTION = -1  # the effect where an episode began


def seeds_of(seed: int | Sequence[int | None] | None, num_envs: int) -> list[int | None]:
    """One for each environment; a number s gives them s, s + 1 ... ValueError: another count of them."""
    if seed is None or isinstance(seed, numbers.Integral):
        return [None if seed is None else int(seed) + i for i in range(num_envs)]
    seeds = list(seed)
    if len(seeds) != num_envs:
        raise ValueError(f"{counted(len(seeds), 'seed', 'seeds')} for {counted(num_envs, 'environment', 'environments')}")
    return seeds


@dataclass
class _Sent:
    """An environment with an action that recv() has not returned yet."""

    turn: int                 # distinguishes it from earlier ones, whose figures may still arrive
    reset: bool
    verdict: Verdict | None   # None: not judged yet
    raised: bool = False      # the loss of its figures in an outage


class WalkVectorEnv(VectorEnv):
    """``num_envs`` environments of one kind, in this process and on one cluster.

    ``options`` are those of the environment. ``batch_size`` is how many recv() returns (default:
    all). One call into C++ steps all walks; the jobs of a step are sent as one batch.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}

    def __init__(self, num_envs: int = 1, *, env_class: type[WalkEnv] = LoopTuneEnv, batch_size: int | None = None,
                 autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP, **options: Any):
        if options.get("mask_in_observation"):
            raise LookupError("mask_in_observation belongs to single environments; here the mask is in the info")
        if not issubclass(env_class, WalkEnv):
            raise TypeError(f"env_class must be LoopTuneEnv or LoopToolEnv, not {env_class.__name__}; gym.make_vec makes a "
                            "vector of any environment")
        self._makes = env_class(**options)
        self.num_envs = num_envs
        self.batch_size = num_envs if batch_size is None else batch_size
        if not 1 <= self.batch_size <= num_envs:
            raise ValueError(f"batch_size must be from 1 to num_envs ({num_envs}), not {self.batch_size}")
        self.metadata = {**type(self).metadata, "autoreset_mode": AutoresetMode(autoreset_mode)}
        self._mode = self.metadata["autoreset_mode"]
        self.single_action_space = self._makes.action_space
        self.single_observation_space = self._makes.observation_space
        self.action_space = gym.spaces.MultiDiscrete([len(self.single_action_space.names)] * num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.render_mode = self._makes.render_mode
        self._starts = [self._makes._start] * num_envs  # of each environment, with the walk at its start
        self._templates = [self._makes._template] * num_envs
        self._episodes: list[Episode | None] = [None] * num_envs
        self._done = np.zeros(num_envs, bool)       # reset by the next action
        self._effects = np.full(num_envs, _NO_ACTION)  # of the newest action
        self._masks = np.zeros((num_envs, len(self.single_action_space.names)), np.int8)
        width = self._makes.max_loops * ROW_WIDTH[self._makes.features]
        self._tensors = np.zeros((num_envs, width), np.float32)
        self._name = self._makes._observation_name
        self._is_measured = self._name in MEASURED  # then every step needs a figure
        self._ready: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()  # index and turn of a _Sent
        self._sent: dict[int, _Sent] = {}
        self._turns = itertools.count()
        self._last = np.arange(num_envs)  # indices returned by the last recv()
        self._rngs: list[np.random.Generator | None] = [None] * num_envs  # None: not reset yet

    # ---- Gymnasium

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
              ) -> tuple[Any, dict[str, Any]]:
        """``options["reset_mask"]`` (bool, num_envs) selects which to reset; ``benchmark``,
        ``merge_all_first`` and ``start_cursor`` are those of the environment: one, or a list with one
        for each, None where it stays. They remain in force for these environments until another reset
        changes them. An environment that is not reset, or whose seed is None, goes on with the random
        numbers that it had."""
        chosen = dict(options or {})
        check_options(chosen, _OPTIONS)
        mask = chosen.pop("reset_mask", None)
        for name, value in chosen.items():
            if isinstance(value, (list, tuple)) and len(value) != self.num_envs:
                raise ValueError(f"{counted(len(value), name, f'{name}s')} for {self._all()}")
        mask = np.ones(self.num_envs, bool) if mask is None else np.asarray(mask)
        if mask.dtype != bool or mask.shape != (self.num_envs,):
            raise ValueError(f"reset_mask must be one bool for each of {self._all()}, not {mask.dtype} of shape "
                             f"{mask.shape}")
        places = np.flatnonzero(mask)
        self._seed(places, seed)
        self._begin(places, chosen)
        if self._is_measured:
            self._makes._await(*(self._episodes[place].figure() for place in places))
        return self._observations(np.arange(self.num_envs)), self._infos(np.arange(self.num_envs))

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Steps all environments and waits for all."""
        places = np.arange(self.num_envs)
        actions = whole_numbers(actions)
        if actions.shape != places.shape:
            raise ValueError(f"actions of shape {actions.shape} for {self._all()}: one for each")
        wanted, resets = self._advance(places, actions)
        rewards = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, bool)
        truncated = np.zeros(self.num_envs, bool)
        verdicts: dict[int, Verdict] = {}
        deadline = time.monotonic() + self._makes.timeout
        # Wait for all before judging one: an outage raises here, and the next step's rewards then
        # include this one's.
        arrived = {place: arrive(self._episodes[place].pair(), self._makes._client(), deadline) for place in wanted}
        for place in wanted:
            verdict = self._episodes[place].judge() if arrived[place] else late()
            rewards[place], terminated[place], truncated[place] = verdict.reward, verdict.terminated, verdict.truncated
            if verdict.failure is not None:
                verdicts[place] = verdict
        self._cut(places, resets, terminated, truncated)
        return self._finish(places, rewards, terminated, truncated, verdicts)

    def close_extras(self, **kwargs: Any) -> None:
        self._episodes = [None] * self.num_envs
        self._makes.close()

    def render(self) -> tuple[str, ...] | None:
        if self.render_mode != "ansi":
            return None
        return tuple(episode.walk.observe("loop_tree") for episode in self._episodes)

    def action_masks(self) -> np.ndarray:
        """Legal actions: bool, num_envs x actions."""
        return self._masks.astype(bool)

    def _all(self) -> str:
        return counted(self.num_envs, "environment", "environments")

    # ---- EnvPool

    def async_reset(self, *, seed: int | None = None) -> None:
        """Starts all environments; recv() returns them as they become ready. Without a ``seed``, each
        goes on with the random numbers that it had."""
        places = np.arange(self.num_envs)
        self._seed(places, seed)
        self._begin(places, {})
        for place in places.tolist():
            self._await(place, measured=self._is_measured, reset=False)

    def send(self, actions: Any, env_id: Any = None) -> None:
        """Sends one action to each of ``env_id`` (default: those of the last recv). Does not
        wait."""
        places = np.asarray(self._last if env_id is None else env_id, np.int64)
        actions = whole_numbers(actions)
        if places.shape != actions.shape or places.ndim != 1:
            raise ValueError(f"{counted(actions.size, 'action', 'actions')} for {counted(places.size, 'environment', 'environments')}")
        if len(set(places.tolist())) < len(places) or ((places < 0) | (places >= self.num_envs)).any():
            raise ValueError(f"env_id {places.tolist()} must be different numbers below {self.num_envs}")
        for place in places.tolist():
            if place in self._sent:
                raise gym.error.AlreadyPendingCallError(f"environment {place} has an action already", "send")
        wanted, resets = self._advance(places, actions)
        for place in places.tolist():
            self._await(place, measured=place in wanted, reset=place in resets)

    def recv(self) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Returns the first ``batch_size`` environments to be ready, numbered in
        ``info["env_id"]``.

        If the coordinator is unreachable this raises, and nothing is lost: another call returns
        what has arrived and requests the rest again."""
        if len(self._sent) < self.batch_size:
            raise gym.error.NoAsyncCallError(
                f"{counted(len(self._sent), 'environment has', 'environments have')} an action, recv() gives {self.batch_size}", "recv")
        got: dict[int, Verdict] = {}
        place = -1
        deadline = time.monotonic() + self._makes.timeout
        try:
            while len(got) < self.batch_size:
                try:
                    place, turn = self._ready.get(timeout=max(0.0, deadline - time.monotonic()))
                except queue.Empty:
                    place = next(each for each in self._sent if each not in got)
                    got[place] = late()
                    continue
                if place in self._sent and self._sent[place].turn == turn and place not in got:
                    verdict = self._verdict(place)
                    if verdict is not None:
                        got[place] = verdict
        except BaseException:
            for each, sent in self._sent.items():
                if each in got:
                    sent.verdict = got[each]
                elif sent.verdict is None:
                    sent.raised = any(figure.lost for figure in self._episodes[each].pair())
                if each in got or each == place:
                    self._ready.put((each, sent.turn))
            raise
        resets = {place for place in got if self._sent.pop(place).reset}
        places = np.array(list(got))
        rewards = np.array([verdict.reward for verdict in got.values()])
        terminated = np.array([verdict.terminated for verdict in got.values()])
        truncated = np.array([verdict.truncated for verdict in got.values()])
        self._cut(places, resets, terminated, truncated)
        self._last = places
        verdicts = {place: verdict for place, verdict in got.items() if verdict.failure is not None}
        observations, rewards, terminated, truncated, info = self._finish(places, rewards, terminated, truncated,
                                                                          verdicts)
        info["env_id"] = places
        return observations, rewards, terminated, truncated, info

    # ---- parts

    def _seed(self, places: np.ndarray, seed: int | Sequence[int | None] | None) -> None:
        seeds = seeds_of(seed, self.num_envs)
        for place in places.tolist():
            if seeds[place] is not None or self._rngs[place] is None:
                self._rngs[place] = np.random.default_rng(seeds[place])

    def _begin(self, places: np.ndarray, options: dict[str, Any]) -> None:
        measuring = self._makes._measuring
        rule = self._makes._reward_rule
        if rule is not None or self._is_measured:
            self._makes._client()
        self._move(places, options)
        for place in places:
            self._episodes[place] = Episode(self._templates[place].copy(), measuring, rule)
        if rule is not None or self._is_measured:
            self._ask([self._episodes[place] for place in places])
        if rule is not None:
            for place in places:
                self._episodes[place].set_baseline()
        self._done[places] = False
        self._effects[places] = _NO_ACTION
        for place in places.tolist():
            self._sent.pop(place, None)  # drops a step that was not received
        self._look(places, np.full(len(places), -1, np.int64))

    def _move(self, places: np.ndarray, options: dict[str, Any]) -> None:
        """Sets where the next episodes of ``places`` start; on an exception no start is
        changed."""
        made: dict[Start, Walk] = {}
        moved: dict[int, Start] = {}
        for place in places.tolist():
            chosen = {name: value[place] if isinstance(value, (list, tuple)) else value for name, value in options.items()}
            if chosen.get("benchmark") is None and self._makes._benchmarks is not None:
                rng = self._rngs[place]
                assert rng is not None
                chosen["benchmark"] = draw(self._makes._benchmarks, rng)
            start = self._starts[place].changed_by(chosen)
            if start != self._starts[place]:
                moved[place] = start
                if start not in made:
                    made[start] = self._makes._make_walk(start, self.single_action_space.names)
        for place, start in moved.items():
            self._starts[place], self._templates[place] = start, made[start]

    def _advance(self, places: np.ndarray, actions: np.ndarray) -> tuple[list[int], set[int]]:
        """Steps the walks. Returns the environments to be measured, and those that were reset
        instead."""
        if any(self._episodes[place] is None for place in places):
            raise gym.error.ResetNeeded("call reset() first")
        if ((actions < 0) | (actions >= self._masks.shape[1])).any():
            raise ValueError(f"actions {actions} are not all in {self.single_action_space}")
        resets: set[int] = set()
        if self._mode == AutoresetMode.NEXT_STEP and self._done[places].any():
            fresh = places[self._done[places]]
            resets = set(fresh.tolist())
            self._begin(fresh, {})
            actions = np.where(np.isin(places, fresh), -1, actions)
        effects = self._look(places, actions)
        self._effects[places] = effects
        self._effects[places[actions < 0]] = _NO_ACTION
        wanted = []
        for place, action, effect in zip(places.tolist(), actions.tolist(), effects.tolist()):
            is_changed = action >= 0 and self._episodes[place].stepped(action, effect)
            if is_changed or self._is_measured:
                wanted.append(place)
        self._ask([self._episodes[place] for place in wanted])
        return wanted, resets

    def _look(self, places: np.ndarray, actions: np.ndarray) -> np.ndarray:
        walks = [self._episodes[place].walk for place in places]
        if np.array_equal(places, np.arange(self.num_envs)):  # in place; otherwise copied below
            return _core.step_many(walks, actions, self._tensors, self._masks)
        tensors, masks = np.empty_like(self._tensors[places]), np.empty_like(self._masks[places])
        effects = _core.step_many(walks, actions, tensors, masks)
        self._tensors[places], self._masks[places] = tensors, masks
        return effects

    def _ask(self, episodes: list[Episode]) -> None:
        """Requests the missing figures as one batch."""
        missing = [(episode, job) for episode in episodes if (job := episode.missing_job()) is not None]
        if missing:
            futures = self._makes._client().submit_jobs([job for _, job in missing])
            for (episode, job), future in zip(missing, futures):
                episode.adopt(job, future)

    def _await(self, place: int, *, measured: bool, reset: bool) -> None:
        self._sent[place] = _Sent(next(self._turns), reset, None if measured else Verdict())
        if measured:
            self._listen(place)
        else:
            self._ready.put((place, self._sent[place].turn))

    def _listen(self, place: int) -> None:
        first, second = (figure.future for figure in self._episodes[place].pair())
        token = place, self._sent[place].turn
        first.add_done_callback(lambda _: second.add_done_callback(lambda _: self._ready.put(token)))

    def _verdict(self, place: int) -> Verdict | None:
        """The verdict of an environment whose figures seem to have arrived; None if they have
        not."""
        sent, pair = self._sent[place], self._episodes[place].pair
        if sent.verdict is not None:
            return sent.verdict
        client = self._makes._client()
        if sent.raised:
            for figure in dict.fromkeys(pair()):
                if figure.lost:
                    figure.ask(client)
            sent.raised = False
            self._listen(place)
            return None
        if not all(figure.future.done() for figure in pair()):
            return None
        if ask_again(pair(), client):
            self._listen(place)
            return None
        return self._episodes[place].judge()

    def _cut(self, places: np.ndarray, resets: set[int], terminated: np.ndarray, truncated: np.ndarray) -> None:
        """Ends the episodes in which nothing is legal any more, and those of the most actions."""
        limit = self._makes._most_actions()
        for row, place in enumerate(places.tolist()):
            if place in resets:
                continue
            if not self._masks[place].any():
                terminated[row] = True
            elif not terminated[row] and len(self._episodes[place].actions) >= limit:
                truncated[row] = True

    def _finish(self, places: np.ndarray, rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray,
                verdicts: dict[int, Verdict]) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        over = terminated | truncated
        self._done[places] = over
        effects = self._effects[places]
        info: dict[str, Any] = {"action_had_no_effect": effects == NOTHING, "_action_had_no_effect": effects != _NO_ACTION}
        for place, verdict in verdicts.items():
            row = int(np.flatnonzero(places == place)[0])
            told: dict[str, Any] = {}
            verdict.tell(told)
            add_info(info, told, row, len(places))
        if self._mode == AutoresetMode.SAME_STEP and over.any():
            info.update(final_info(self._observations(places), self._infos(places), over))
            self._begin(places[over], {})
            if self._is_measured:
                arrive([self._episodes[place].figure() for place in places[over]], self._makes._client(),
                       time.monotonic() + self._makes.timeout)
        return self._observations(places), rewards, terminated, truncated, {**self._infos(places), **info}

    def _observations(self, places: np.ndarray) -> Any:
        if self._name == "loops_tensor":
            return self._makes._tensor(self._tensors[places])
        rows = []
        for place in places:
            self._makes._episode = self._episodes[place]
            rows.append(self._makes._default_observation())
        self._makes._episode = None
        if isinstance(self.single_observation_space, gym.spaces.Box):
            return self._makes._tensor(np.stack([np.asarray(row, self.single_observation_space.dtype) for row in rows]))
        return tuple(rows)

    def _infos(self, places: np.ndarray) -> dict[str, Any]:
        told = np.ones(len(places), bool)
        benchmarks = np.array([self._starts[place].benchmark for place in places], object)
        return {"action_mask": self._masks[places].copy(), "_action_mask": told, "benchmark": benchmarks, "_benchmark": told}


def add_info(info: dict[str, Any], told: dict[str, Any], row: int, rows: int) -> None:
    """Adds what one of ``rows`` environments tells, as Gymnasium's vectors do."""
    for key, value in told.items():
        nothing = np.zeros(rows, bool) if isinstance(value, bool) else np.full(rows, None, object)
        info.setdefault(key, nothing)[row] = value
        info.setdefault(f"_{key}", np.zeros(rows, bool))[row] = True


def final_info(observations: Sequence[Any], told: dict[str, Any], over: np.ndarray) -> dict[str, Any]:
    """For the info of a step that ended episodes and began new ones: the last observations of those that are ``over``,
    and what was ``told`` of them."""
    final = np.full(len(over), None, object)
    for row in np.flatnonzero(over):
        final[row] = observations[row]
    return {"final_obs": final, "_final_obs": over.copy(), "final_observation": final, "_final_observation": over.copy(),
            "final_info": {key: over.copy() if key.startswith("_") else value for key, value in told.items()},
            "_final_info": over.copy()}

