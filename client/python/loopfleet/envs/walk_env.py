"""The environment behind LoopTool-v0 and LoopTune-v0: Gymnasium's interface with CompilerGym's
names."""

from __future__ import annotations

import copy
import inspect
import math
import os
import time
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np

from .. import _core
from .._core import JobError, Outcome, Walk, full_uri
from ..client import Client
from ..errors import DeadlineExceeded
from ..settings import find_address
from .datasets import Benchmark, Dataset, Datasets, draw, to_draw_from
from .episode import CURSOR, NOTHING, Episode, Figure, Measuring, Verdict, arrive, conclusive, late
from .rewards import REWARDS, find_reward
from .spaces import (DEFAULT_MAX_LOOPS, MOST_LOOPS, STRIDE_BUCKETS, NamedDiscrete, action_names, checked_flag,
                     checked_name, checked_number, observation_space, whole_number)
from .state import EnvState, ValidationResult

MEASURED = ("flops", "gflops", "runtime")
_OPTIONS = ("benchmark", "reward_space", "observation_space", "merge_all_first", "start_cursor")

_clients: weakref.WeakValueDictionary[tuple[int, str], Client] = weakref.WeakValueDictionary()


def shared_client(address: str | None) -> Client:
    """The client shared by all environments of this process with the same coordinator."""
    key = (os.getpid(), find_address(address))
    client = _clients.get(key)
    if client is None:
        client = _clients[key] = Client(key[1])
    return client


def need_client(client: Any) -> None:
    """TypeError: it measures nothing, such as an address."""
    if client is not None and not any(hasattr(client, name) for name in ("submit_job", "submit_jobs", "evaluate_many")):
        raise TypeError(f"client must be a loopfleet.Client, not {client!r:.60}; an address is address=")


@dataclass(frozen=True)
class Start:
    """Where the walks of an environment start."""

    benchmark: Benchmark
    merge_all_first: bool = False
    start_cursor: int = 0

    def changed_by(self, options: Mapping[str, Any]) -> Start:
        """Applies the ``options`` of a reset; None or missing: unchanged."""
        given = {key: options[key] for key in ("benchmark", "merge_all_first", "start_cursor")
                 if options.get(key) is not None}
        if "benchmark" in given:
            given["benchmark"] = Benchmark(full_uri(given["benchmark"]))
        if "merge_all_first" in given:
            given["merge_all_first"] = checked_flag("merge_all_first", given["merge_all_first"])
        if "start_cursor" in given:
            given["start_cursor"] = whole_number(given["start_cursor"], "start_cursor")
            checked_number("start_cursor", given["start_cursor"])
        return replace(self, **given)


def check_options(given: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in given:
        checked_name("option", key, known)


class View(Mapping):
    """A mapping that computes ``view[name]`` on demand."""

    def __init__(self, read: Any, names: Sequence[str]):
        self._read = read
        self._names = names

    def __getitem__(self, name: str) -> Any:
        return self._read(name)

    def __iter__(self) -> Any:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def spaces(self) -> list[str]:
        return list(self._names)


def _arguments() -> list[str]:
    """Names of the environments' arguments."""
    return [name for name, parameter in inspect.signature(WalkEnv.__init__).parameters.items()
            if name != "self" and parameter.kind is not parameter.VAR_KEYWORD]


class WalkEnv(gym.Env):
    """Walks over loop trees. See docs/PYTHON.md for every argument.

    ``reset`` uses the network only with a reward space, and a step only if it changed the tree; both
    do for an observation that is measured.
    Unknown names in arguments raise an error with the nearest valid name.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}

    # What distinguishes the two environments.
    dialect = ""
    default_benchmark = ""
    default_observation = ""
    action_sets: dict[str, tuple[str, ...]] = {}
    default_actions = ""

    def __init__(self, benchmark: str | None = None, *, benchmarks: Sequence[str] | Dataset | None = None,
                 action_space: str | Iterable[str] | None = None, observation_space: str | None = None,
                 reward_space: str | None = "gflops", episode_steps: int | None = None, client: Any = None,
                 address: str | None = None, rules: str = "structural", features: str | None = None,
                 max_loops: int | None = None, merge_all_first: bool = False, tensors: str = "numpy",
                 mask_in_observation: bool = False, peak_gflops: float = 0.0, timeout: float = 300.0,
                 threads: int = 1, precision: float = 0.0, budget_ms: float = 0.0, fresh: bool = False,
                 device: str = "", render_mode: str | None = None, **unknown: Any):
        for name in unknown:
            raise TypeError(f"unknown argument '{name}'{_core.nearest(name, _arguments())}")
        if render_mode not in (None, "ansi"):
            # Stable-Baselines3 asks for "rgb_array" and goes on without it after a TypeError.
            raise TypeError(f"unknown render_mode '{render_mode}'; valid: ansi")
        if features is not None:
            checked_name("features", features, STRIDE_BUCKETS)
        checked_name("tensors", tensors, ("numpy", "torch"))
        for argument, count in (("episode_steps", episode_steps), ("max_loops", max_loops)):
            if count is not None and count < 1:
                raise ValueError(f"{argument} must be at least 1, not {count}")
        if max_loops is not None and max_loops > MOST_LOOPS:
            raise ValueError(f"max_loops must be at most {MOST_LOOPS}, not {max_loops}")
        checked_number("peak_gflops", peak_gflops)
        need_client(client)
        self.render_mode = render_mode
        self.timeout = checked_number("timeout", timeout, above=0)
        self.episode_steps = episode_steps
        self.tensors = tensors
        self.features = features or ("agent58" if self.dialect == "agent" else "agent20")
        self.max_loops = max_loops or DEFAULT_MAX_LOOPS[self.features]
        self.mask_in_observation = mask_in_observation
        self._rules = rules
        self._benchmarks = to_draw_from(benchmarks)
        self._start = Start(Benchmark(full_uri(benchmark or self.default_benchmark)),
                            checked_flag("merge_all_first", merge_all_first))
        self._given: Benchmark | None = None  # for the next episode
        name, names = action_names(action_space, self.action_sets, self.default_actions)
        self.action_space = NamedDiscrete(names, name)
        self._reward_rule = find_reward(reward_space)
        self._address = address
        self._client_given = client
        self._measuring = Measuring(client, {"threads": threads, "precision": precision, "budget_ms": budget_ms,
                                             "fresh": checked_flag("fresh", fresh), "device": device}, peak_gflops)
        self._observation_names = [row[0] for row in _core.observations(self.dialect)] + list(MEASURED)
        self.observation_space = observation_space or self.default_observation
        self._template = self._make_walk(self._start, names)
        if wrong := _core.failure_of(self._template.job(**self._measuring.fields)):
            raise ValueError(wrong[1])
        self._episode: Episode | None = None
        self._since = time.monotonic()
        self._reward_seen: dict[str, Figure] = {}

    # ---- Gymnasium

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None,
              benchmark: str | None = None, action_space: str | Iterable[str] | None = None,
              observation_space: str | None = None, reward_space: Any = ..., timeout: float | None = None,
              ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode on ``benchmark`` (or options["benchmark"]), else on the one that
        ``env.benchmark`` was set to, else on one drawn from ``benchmarks``, else on the last one. A
        reset that raises changes only the state of the random number generator."""
        timeout = self.timeout if timeout is None else checked_number("timeout", timeout, above=0)
        chosen = dict(options or {})
        check_options(chosen, _OPTIONS)
        for key, given in (("benchmark", benchmark), ("observation_space", observation_space)):
            if given is not None:
                chosen[key] = given
        if reward_space is not ...:
            chosen["reward_space"] = reward_space
        rule = find_reward(chosen["reward_space"]) if "reward_space" in chosen else self._reward_rule
        actions = self.action_space
        if action_space is not None:
            name, names = action_names(action_space, self.action_sets, self.default_actions)
            actions = NamedDiscrete(names, name)
        observation_name = chosen.get("observation_space") or self._observation_name
        space = None if observation_name is None else self._space_of(observation_name, len(actions.names))
        super().reset(seed=seed)
        if chosen.get("benchmark") is None:
            chosen["benchmark"] = self._given
        if chosen["benchmark"] is None and self._benchmarks is not None:
            chosen["benchmark"] = draw(self._benchmarks, self.np_random)
        start = self._start.changed_by(chosen)
        template = self._template
        if start != self._start or action_space is not None:
            template = self._make_walk(start, actions.names)
        episode = Episode(template.copy(), self._measuring, rule)
        if rule is not None:
            self._client()
            episode.set_baseline()
        if observation_name in MEASURED:
            self._client()
            self._await(episode.figure(), timeout=timeout)
        self._start, self._template, self._episode, self._given = start, template, episode, None
        self._reward_rule, self.action_space = rule, actions
        self._observation_name, self._observation_space = observation_name, space
        self.timeout = timeout
        self._reward_seen = {}
        self._since = time.monotonic()
        return self._default_observation(), self._info()

    def step(self, action: Any, observation_spaces: Sequence[str] | None = None,
             reward_spaces: Sequence[str] | None = None, timeout: float | None = None
             ) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Applies one action, or a list of actions as multistep() does. With ``observation_spaces``
        or ``reward_spaces``, the observation or reward is a list."""
        several = isinstance(action, (list, tuple))
        return self.multistep(action if several else [action], observation_spaces, reward_spaces, timeout)

    def multistep(self, actions: Iterable[Any], observation_spaces: Sequence[str] | None = None,
                  reward_spaces: Sequence[str] | None = None, timeout: float | None = None
                  ) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Applies several actions as one step, with one observation and one reward for the whole
        change."""
        episode = self._in_episode()
        timeout = self.timeout if timeout is None else checked_number("timeout", timeout, above=0)
        numbers = [self._number(action) for action in actions]
        effect = NOTHING
        for number in numbers:
            one = episode.walk.step(number)
            episode.stepped(number, one)
            effect = max(effect, one)
        verdict = Verdict()
        if ((self._reward_rule is not None and effect > CURSOR)
                or (observation_spaces is None and self._observation_name in MEASURED)):
            client, deadline = self._client(), time.monotonic() + timeout
            episode.figure()
            verdict = episode.settle(client, deadline)
        reward: Any = verdict.reward
        if reward_spaces is not None:
            reward = [self._read_reward(name) for name in reward_spaces]
        if self._reward_rule is not None and verdict.failure is None:
            self._reward_seen[self._reward_rule.name] = episode.before  # env.reward counts from here
        observation = (self._default_observation() if observation_spaces is None
                       else [self.observation[name] for name in observation_spaces])
        info = self._info()
        info["action_had_no_effect"] = effect == NOTHING
        verdict.tell(info)
        terminated = verdict.terminated or not info["action_mask"].any()  # whatever followed would change nothing
        over = len(episode.actions) >= self._most_actions()
        return observation, reward, terminated, verdict.truncated or (over and not terminated), info

    def render(self) -> str | None:
        return self.observation["loop_tree"] if self.render_mode == "ansi" else None

    def close(self) -> None:
        self._episode = None
        self._measuring = Measuring(self._client_given, self._measuring.fields, self._measuring.peak_gflops)

    def action_masks(self) -> np.ndarray:
        """Legal actions as bool, for sb3-contrib's MaskablePPO."""
        return self._in_episode().walk.mask().astype(bool)

    # ---- CompilerGym

    def fork(self) -> WalkEnv:
        """A copy of the environment in the same state, sharing the client and the measured
        figures."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._np_random = copy.deepcopy(self._np_random)  # it draws what this one would draw
        other._episode = self._in_episode().fork()
        other._reward_seen = self._reward_seen.copy()
        return other

    def apply(self, state: EnvState) -> None:
        """Replays the actions of a state from its start."""
        start = {"benchmark": state.benchmark, "start_cursor": state.start_cursor,
                 "merge_all_first": state.merge_all_first}
        if self._episode is None or self._episode.actions or self._start != self._start.changed_by(start):
            self.reset(options=start)
        names = state.actions
        if names:
            self.multistep([self.action_space[name] for name in names])

    @property
    def state(self) -> EnvState:
        episode = self._in_episode()
        return EnvState(str(self.benchmark), self.action_space.to_string(episode.actions), self.episode_walltime,
                        None if self._reward_rule is None else episode.total_reward,
                        self._start.start_cursor, self._start.merge_all_first)

    def validate(self, state: EnvState | None = None, *, tolerance: float = 0.1) -> ValidationResult:
        """Replays a state in another environment and measures its start and end again. Every
        measured kernel's output is verified. Rewards agree if they differ by at most ``tolerance``
        times the larger figure."""
        since = time.monotonic()
        state = state or self.state
        errors: list[str] = []
        replay_failed = reward_good = reward_bad = right = wrong = False
        other = type(self)(state.benchmark, action_space=self.action_space.names, reward_space=None,
                           client=self._client(), rules=self._rules, features=self.features,
                           merge_all_first=state.merge_all_first)
        try:
            other.reset(options={"start_cursor": state.start_cursor})
            start = other._episode.walk.copy()
            for name in state.actions:
                other.step(other.action_space[name])
        except (JobError, LookupError) as error:
            replay_failed = True
            errors.append(str(error))
        if not replay_failed:
            # One worker measures both, as in an episode.
            fields = {**self._measuring.fields, "fresh": True, "affinity": other._episode.affinity}
            futures = [self._client().submit_job(walk.job(**fields)) for walk in (start, other._episode.walk)]
            if wait(futures, self.timeout).not_done:
                raise DeadlineExceeded(f"no figures within the environment's timeout of {self.timeout} s")
            before, after = (future.result() for future in futures)
            right = after.ok
            wrong = after.status == "WRONG_OUTPUT"
            errors += [f"{o.status}: {o.message}" for o in (before, after) if not o.ok]
            replay_failed = bool(errors) and not wrong
            if (state.reward is not None and before.ok and after.ok and "D" not in (before.grade, after.grade)
                    and self._reward_rule is not None):
                measured = self._value(self._reward_rule.name, before, after)
                scale = max(before.gflops, after.gflops) if "flops" in self._reward_rule.name else 1.0
                if self._reward_rule.needs_peak:
                    scale = 1.0
                reward_good = abs(measured - state.reward) <= tolerance * scale
                reward_bad = not reward_good
                if reward_bad:
                    errors.append(f"expected reward {state.reward}, received reward {measured}")
        return ValidationResult(state, replay_failed, reward_good, reward_bad, right, wrong,
                                time.monotonic() - since, tuple(errors))

    @property
    def observation(self) -> View:
        """``env.observation["loop_tree"]``: any observation of the current state."""
        return View(self._read_observation, self._observation_names)

    @property
    def reward(self) -> View:
        """``env.reward["gflops"]``: the reward since it was last read in this episode, or earned by a step
        as ``reward_space``, or since the episode's start."""
        return View(self._read_reward, list(REWARDS))

    @property
    def datasets(self) -> Datasets:
        return Datasets(self.dialect)

    @property
    def benchmark(self) -> Benchmark:
        """The program of this episode; set, that of the next one."""
        return self._start.benchmark

    @benchmark.setter
    def benchmark(self, benchmark: str) -> None:
        start = self._start.changed_by({"benchmark": benchmark})
        template = self._make_walk(start, self.action_space.names)
        self._given = start.benchmark
        if self._episode is None:
            self._start, self._template = start, template

    @property
    def actions(self) -> list[int]:
        return list(self._in_episode().actions)

    @property
    def episode_reward(self) -> float | None:
        if self._reward_rule is None:
            return None
        episode = self._in_episode()
        return episode.total_reward + episode.wrapped

    @episode_reward.setter
    def episode_reward(self, total: float) -> None:
        """For a wrapper that changes what steps earn; ``state`` has what they earned."""
        episode = self._in_episode()
        episode.wrapped = total - episode.total_reward

    @property
    def episode_walltime(self) -> float:
        return time.monotonic() - self._since

    @property
    def version(self) -> str:
        """The package's version."""
        return _core.__version__

    def commandline(self) -> str:
        """The actions of this episode, as a list of names with commas."""
        return self.state.commandline

    @property
    def in_episode(self) -> bool:
        return self._episode is not None

    @property
    def outcome(self) -> Outcome:
        """The outcome of the current tree; measures it if needed."""
        self._client()
        return self._await(self._in_episode().figure())[0]

    @property
    def walk(self) -> Walk:
        return self._in_episode().walk

    @property
    def reward_space(self) -> str | None:
        return None if self._reward_rule is None else self._reward_rule.name

    @reward_space.setter
    def reward_space(self, name: str | None) -> None:
        """In an episode: applies to its next steps, and resets the total reward."""
        rule = find_reward(name)
        if self._episode is not None:
            if rule is not None:
                self._client()
            self._episode.change_reward(rule)
        self._reward_rule = rule

    @property
    def observation_space(self) -> gym.Space | None:
        return self._observation_space

    @observation_space.setter
    def observation_space(self, name: str | None) -> None:
        """None: reset and step give None as the observation."""
        self._observation_space = None if name is None else self._space_of(name, len(self.action_space.names))
        self._observation_name = name

    # ---- parts

    def _space_of(self, name: str, actions: int) -> gym.Space:
        checked_name("observation space", name, self._observation_names)
        space = observation_space(name, actions=actions, features=self.features, max_loops=self.max_loops)
        if self.mask_in_observation:
            space = gym.spaces.Dict({"obs": space, "action_mask": gym.spaces.Box(0, 1, (actions,), np.int8)})
        return space

    def _make_walk(self, start: Start, actions: Sequence[str]) -> Walk:
        benchmark = start.benchmark
        if _core.kind_of(str(benchmark)) == "passes":
            raise LookupError(f"{benchmark} is a program for LLVM passes, not loops: use loopfleet/LLVM-v0")
        source = {"benchmark" if benchmark.startswith("benchmark://") else "ir": str(benchmark)}
        if (dialect := Walk(**source).dialect) != self.dialect:
            other = "LoopTune-v0" if dialect == "agent" else "LoopTool-v0"
            raise LookupError(f"{benchmark} is for loopfleet/{other}")
        return Walk(**source, action_space=list(actions), rules=self._rules, features=self.features,
                    stride_buckets=STRIDE_BUCKETS[self.features], merge_all_first=start.merge_all_first,
                    start_cursor=start.start_cursor)

    def _client(self) -> Any:
        """The client, created at the first measurement."""
        if self._measuring.client is None:
            self._measuring.client = shared_client(self._address)
        return self._measuring.client

    def _most_actions(self) -> float:
        """Then an episode is truncated. In dialect simple a job has all the actions of its tree, and a reward takes jobs."""
        most = math.inf if self.episode_steps is None else self.episode_steps
        is_bounded = self.dialect == "simple" and self._reward_rule is not None
        return min(most, _core.MOST_ACTIONS) if is_bounded else most

    def _in_episode(self) -> Episode:
        if self._episode is None:
            raise gym.error.ResetNeeded("call reset() first")
        return self._episode

    def _number(self, action: Any) -> int:
        if isinstance(action, str):
            return self.action_space[action]
        number = whole_number(action)
        if not 0 <= number < len(self.action_space.names):
            raise ValueError(f"action {number} is not in {self.action_space}")
        return number

    def _await(self, *figures: Figure, timeout: float | None = None) -> list[Outcome]:
        timeout = self.timeout if timeout is None else timeout
        if not arrive(figures, self._client(), time.monotonic() + timeout):
            raise DeadlineExceeded(f"no figure within the environment's timeout of {timeout} s")
        return [figure.future.result() for figure in figures]

    def _value(self, name: str, before: Outcome, after: Outcome) -> float:
        rule = REWARDS[name]
        return rule.value(before, after, self._measuring.peak_of(after) if rule.needs_peak else 0.0)

    def _read_reward(self, name: str) -> float:
        rule = find_reward(name)
        episode = self._in_episode()
        self._client()
        before = self._reward_seen.get(name)
        if before is None:
            start = episode.fork()
            start.walk.restart()
            start._key = None
            before = start.figure()
            episode.figures[start.key()] = before
        after = episode.figure()
        self._reward_seen[name] = after
        outcomes = [conclusive(outcome) for outcome in self._await(before, after)]
        if not all(outcome.ok for outcome in outcomes):
            return math.nan
        return self._value(rule.name, *outcomes)

    def _read_observation(self, name: str) -> Any:
        checked_name("observation", name, self._observation_names)
        walk = self._in_episode().walk
        if name == "loops_tensor":
            return self._tensor(walk.loops_tensor(self.max_loops))
        if name in ("stride_tensor", "stride_histogram", "5_prev_actions_tensor"):
            return self._tensor(np.asarray(walk.observe(name), np.float32))
        if name == "action_state" and self.dialect == "simple":
            return self._tensor(walk.action_state())
        if name in MEASURED:
            return self._of_figure(name, self.outcome)
        if name.endswith("_networkx"):
            import networkx
            return networkx.node_link_graph(walk.observe(name), edges="edges")
        return walk.observe(name)

    def _of_figure(self, name: str, outcome: Outcome) -> float:
        if not outcome.ok:
            warnings.warn(f"observation '{name}' has no figure: {outcome.status}: {outcome.message}", RuntimeWarning, stacklevel=4)
        return outcome.elapsed_ns * 1e-9 if name == "runtime" else outcome.gflops

    def _tensor(self, array: np.ndarray) -> Any:
        if self.tensors == "numpy":
            return array
        import torch
        return torch.from_numpy(array)

    def _default_observation(self) -> Any:
        """Does not wait. Without a figure, the worst one: the step was made and cannot raise."""
        name = self._observation_name
        if name is None:
            return None
        if name in MEASURED:
            client, figure = self._client(), self._in_episode().figure()
            has_come = arrive([figure], client, time.monotonic())
            value = self._of_figure(name, figure.future.result() if has_come else late().failure)
            if math.isnan(value):
                value = math.inf if name == "runtime" else 0.0
            value = self._tensor(np.asarray(value))
        else:
            value = self._read_observation(name)
        if self.mask_in_observation:
            return {"obs": value, "action_mask": self._in_episode().walk.mask()}
        return value

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._in_episode().walk.mask(), "benchmark": self.benchmark}
