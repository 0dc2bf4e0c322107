"""LLVM pass ordering as Gymnasium environments: loopfleet/LLVM-v0 and its variants (docs/LLVM.md).

A step is a job: the passes so far and what to observe after them. So an environment holds no state
but that list, a fork is a copy of it, and a lost worker costs nothing.
"""

from __future__ import annotations

import copy
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import gymnasium as gym
import numpy as np

from .. import _core, llvm_semantics
from .._core import Outcome, full_uri
from ..jobs import job
from ..observed_blob import in_full_or_again
from ..source_files import compile_to_bitcode
from .datasets import Benchmark, draw, to_draw_from
from .pass_episode import PassEpisode
from .pass_error import refuse_failure, refuse_outage
from .pass_observations import CONTROL_POSITIONS, OBSERVATIONS, find_pass_observation
from .pass_rewards import PASS_REWARDS, PassReward, find_pass_reward
from .program_datasets import ProgramDataset, ProgramDatasets
from .spaces import NamedDiscrete, NoObservation, checked_name, checked_number
from .state import EnvState, ValidationResult
from .walk_env import View, check_options, need_client, shared_client

ACTION_SPACES = ("PassesAll", "Passes19", "PassesPipelines")
_TEXT_OF = dict(_core.pass_actions("PassesAll"))  # flag: the pass that it runs
# Flags that do nothing, or what another flag does.
_WITHOUT_EFFECT = frozenset(_TEXT_OF) - frozenset(flag for flag, _ in _core.pass_actions("Passes19"))
DEFAULT_BENCHMARK = "generator://csmith-v0/0"
_COUNT = "IrInstructionCount"
_OPTIONS = ("benchmark", "observation_space", "reward_space")


def _program(benchmark: Any) -> Benchmark:
    """``benchmark``, if it may be a program's URI ("small-v0/qsort" is short for one), or the program in a file."""
    if not isinstance(benchmark, str):
        raise TypeError(f"benchmark must be a text, not {benchmark!r:.60}")
    if isinstance(benchmark, Benchmark) and benchmark.bitcode is not None:
        return benchmark
    if benchmark.startswith("file://"):
        return Benchmark.from_file(benchmark, unquote(urlsplit(benchmark).path))
    full = full_uri(benchmark)
    if _core.kind_of(full) != "passes":
        known = [dataset.name for dataset in ProgramDatasets()]
        raise LookupError(f"{benchmark} is no program for LLVM passes{_core.nearest(full.rpartition('/')[0], known)}; "
                          f"valid: {', '.join(known)}; loops are for loopfleet/LoopTune-v0 and loopfleet/LoopTool-v0")
    return Benchmark(full)


def _without_effect(names: Sequence[str]) -> frozenset[str]:
    """Of ``names`` those that do nothing, or what another one of ``names`` does."""
    enough = {"no-op-module"} | {_TEXT_OF.get(name, name) for name in names if name not in _WITHOUT_EFFECT}
    return frozenset(name for name in names if name in _WITHOUT_EFFECT and _TEXT_OF[name] in enough)


class LlvmEnv(gym.Env):
    """Passes over a program, one a step. See docs/LLVM.md for every argument.

    ``benchmark`` is a program's URI, that of a file of bitcode (file:///...), or a ``Benchmark.from_file``. Each
    reset draws one of ``benchmarks``, a list or a data set. ``action_space``: "PassesAll" (CompilerGym's 124),
    "Passes19", "PassesPipelines", or a list of flags and raw texts. ``observation_space``: a name of
    ``observation.spaces``, or None. ``reward_space``: a name of ``PASS_REWARDS``, or None. After a pass that fails (it
    crashes, or breaks the program) the episode is terminated, with the reward 0, or minus the return so far if
    ``default_negates_returns``. ``programl_control_positions``: the position of a control edge in ProGraML's graphs is
    the successor's "index", or "zero" as in CompilerGym.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}

    def __init__(self, benchmark: str = DEFAULT_BENCHMARK, *, benchmarks: Sequence[str] | ProgramDataset | None = None,
                 action_space: str | Iterable[str] = "PassesAll", observation_space: str | None = None,
                 reward_space: str | None = None, episode_steps: int | None = None,
                 default_negates_returns: bool = False, programl_control_positions: str = "index", client: Any = None,
                 address: str | None = None, timeout: float = 300.0, render_mode: str | None = None):
        if render_mode not in (None, "ansi"):
            raise TypeError(f"unknown render_mode '{render_mode}'; valid: ansi")
        if episode_steps is not None and episode_steps < 1:
            raise ValueError(f"episode_steps must be at least 1, not {episode_steps}")
        if episode_steps is not None and episode_steps > _core.MOST_PASSES:
            raise ValueError(f"episode_steps must be at most {_core.MOST_PASSES}, the passes of one job, not "
                             f"{episode_steps}")
        need_client(client)
        if isinstance(action_space, str):
            flags = [flag for flag, _ in _core.pass_actions(checked_name("action space", action_space, ACTION_SPACES))]
            self.action_space = NamedDiscrete(flags, action_space)
        else:
            self.action_space = NamedDiscrete(list(action_space))
            for name in self.action_space.names:
                if wrong := _core.failure_of(job(DEFAULT_BENCHMARK, passes=[name]), replay=True):
                    raise LookupError(f"action_space: {wrong[1]}")
        self._idle = _without_effect(self.action_space.names)
        self.render_mode = render_mode
        self.timeout = checked_number("timeout", timeout, above=0)
        self.episode_steps = episode_steps
        self.default_negates_returns = default_negates_returns
        self._control_positions = checked_name("programl_control_positions", programl_control_positions,
                                               CONTROL_POSITIONS)
        self._benchmark = self._chosen = _program(benchmark)  # _chosen: for the episode that begins
        self._given: Benchmark | None = None  # for the next episode
        self._benchmarks = to_draw_from(benchmarks)
        self._client_given, self._client_made, self._address = client, None, address
        self._reward_rule = self._rule(reward_space)
        self._observation_name: str | None = None
        self._observe_by_default(observation_space)
        self._episode: PassEpisode | None = None
        self._since = time.monotonic()
        self._reward_seen: dict[str, float] = {}

    # ---- Gymnasium

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None,
              benchmark: str | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode on ``benchmark`` (or options["benchmark"]), else on the one that ``env.benchmark`` was set
        to, else on one drawn from ``benchmarks``, else on the last one. PassError: the program cannot be had."""
        super().reset(seed=seed)
        self._choose(dict(options or {}), benchmark)
        self._end_episode()
        self._start(self._evaluate([self._first_job()])[0])
        return self._observation(), self._info()

    def step(self, action: Any, observation_spaces: Sequence[str] | None = None,
             reward_spaces: Sequence[str] | None = None) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Runs the pass of an action, or of a list of actions as one step. An action is a number of the
        action space, or one of its names."""
        episode = self._in_episode()
        several = isinstance(action, (list, tuple))
        flags = [self._flag(each) for each in (action if several else [action])]
        wanted = self._wanted(*(observation_spaces or ()),
                              *(find_pass_reward(name).metric for name in reward_spaces or ()))
        outcome = self._evaluate([self._job(episode.passes + flags, wanted)])[0]
        reward, terminated, info = self._settle(flags, outcome)
        if reward_spaces is not None:
            reward = [self._read_reward(name) for name in reward_spaces]
        if outcome.ok:
            self._see_default_reward()
        observation = (self._observation() if observation_spaces is None
                       else [self.observation[name] for name in observation_spaces])
        return observation, reward, terminated, self._is_over() and not terminated, info

    def multistep(self, actions: Iterable[Any], observation_spaces: Sequence[str] | None = None,
                  reward_spaces: Sequence[str] | None = None) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        return self.step(list(actions), observation_spaces, reward_spaces)

    def render(self) -> str | None:
        return self.observation["Ir"] if self.render_mode == "ansi" else None

    def close(self) -> None:
        self._end_episode()
        self._client_made = None

    # ---- CompilerGym

    @property
    def benchmark(self) -> Benchmark:
        """The program of this episode, or of the next one if none has begun; set, that of the next one."""
        return self._given if self._episode is None and self._given is not None else self._benchmark

    @benchmark.setter
    def benchmark(self, benchmark: str) -> None:
        self._given = _program(benchmark)

    def make_benchmark(self, inputs: str | os.PathLike | Sequence[str | os.PathLike],
                       copt: Sequence[str] | None = None, *, timeout: float = 600.0) -> Benchmark:
        """Files of C (.c), C++ (.cc, .cpp, .cxx) and bitcode (.bc) as one benchmark, which is sent to the coordinator.
        ``copt``: more arguments of clang. ``timeout``: seconds until it was compiled and linked. DeadlineExceeded.
        BenchmarkInitError: a compiler is missing or refuses a file. FileNotFoundError. ValueError: a file of another
        kind, no bitcode, or more than 16 MiB of it."""
        bitcode = compile_to_bitcode(inputs, copt or [], timeout)
        uri = self._client().add_program(bitcode, timeout=self.timeout)
        return Benchmark.from_file_contents(uri, bitcode)

    @property
    def observation(self) -> View:
        """``env.observation["Autophase"]``: any observation of the current state. A file of ``BitcodeFile`` is removed
        when the environment is reset or closed."""
        return View(self._read_observation, list(OBSERVATIONS))

    @property
    def reward(self) -> View:
        """``env.reward["IrInstructionCountOz"]``: the reward since it was last read in this episode, or earned by a
        step as ``reward_space``, or since the episode's start."""
        return View(self._read_reward, list(PASS_REWARDS))

    def fork(self) -> LlvmEnv:
        """A copy in the same state; it costs nothing on the fleet."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._np_random = copy.deepcopy(self._np_random)  # it draws what this one would draw
        other._episode = self._in_episode().copy()
        other._reward_seen = dict(self._reward_seen)
        return other

    @property
    def state(self) -> EnvState:
        """After a pass that failed: the passes before it, and what they earned."""
        episode = self._in_episode()
        return EnvState(self.benchmark, ",".join(episode.passes), time.monotonic() - self._since,
                        None if self._reward_rule is None else episode.earned)

    def apply(self, state: EnvState) -> None:
        """Replays the passes of a state. ValueError: one of them fails; the environment is at the program's start."""
        self.reset(benchmark=state.benchmark)
        if state.actions:
            *_, info = self.step([self.action_space[flag] for flag in state.actions])
            if "error_type" in info:
                raise ValueError(f"the environment terminated with error: {info['error_type']}: "
                                 f"{info['error_details']}")

    def validate(self, state: EnvState | None = None, *, semantics: bool = True) -> ValidationResult:
        """Runs a state's passes again, without the store, and compares the reward exactly. With
        ``semantics``, a program of csmith-v0 or small-v0 is run here, before and after the passes, and
        its output compared (loopfleet.llvm_semantics; needs clang-19). Neither ``benchmark_semantics_``
        field is set if there is nothing to compare."""
        since = time.monotonic()
        state = state or self.state
        rule = self._reward_rule
        wanted = [_COUNT] if rule is None else [rule.metric, *([rule.baseline] if rule.baseline else [])]
        start, end = self._evaluate([{**self._job(passes, wanted, state.benchmark), "fresh": True}
                                     for passes in ([], state.actions)])
        errors = [f"{outcome.status}: {outcome.message}" for outcome in (start, end) if not outcome.ok]
        good = bad = False
        if not errors and rule is not None and state.reward is not None:
            before, after = start.observed[rule.metric], end.observed[rule.metric]
            base = start.observed[rule.baseline] if rule.baseline else 0.0
            reward = rule.of(before, after, before, base)
            good = math.isclose(reward, state.reward, rel_tol=1e-9, abs_tol=1e-9)
            bad = not good
            if bad:
                errors.append(f"expected reward {state.reward}, received reward {reward}")
        replay_failed = bool(errors) and not bad
        same = differs = False
        if semantics and not replay_failed and full_uri(state.benchmark).startswith(llvm_semantics.CHECKABLE):
            found = llvm_semantics.check_semantics(self._client(), state.benchmark, state.actions,
                                                   timeout=self.timeout)
            same, differs = found.verdict == "equal", found.verdict == "differs"
            if differs:
                errors.append(f"another output after {','.join(found.shortest)}: {found.reason}")
        return ValidationResult(state, replay_failed, good, bad, same, differs, walltime=time.monotonic() - since,
                                errors=tuple(errors))

    def commandline(self) -> str:
        """What makes the same module without loopfleet: ``opt-19 -passes='...' in.bc -o out.bc``."""
        return str(self._in_episode().values["commandline"])

    @property
    def observation_space_name(self) -> str | None:
        return self._observation_name

    @property
    def observation_space(self) -> gym.Space:
        return self._observation_space

    @observation_space.setter
    def observation_space(self, name: str | None) -> None:
        """None: reset and step give None as the observation."""
        self._observe_by_default(name)

    @property
    def reward_space(self) -> str | None:
        return None if self._reward_rule is None else self._reward_rule.name

    @reward_space.setter
    def reward_space(self, name: str | None) -> None:
        """In an episode: applies to its next steps, and the total starts at 0."""
        self._reward_rule = self._rule(name)
        if self._episode is not None:
            self._episode.earned = self._episode.penalty = 0.0

    @property
    def datasets(self) -> ProgramDatasets:
        return ProgramDatasets()

    @property
    def actions(self) -> list[int]:
        return [self.action_space[flag] for flag in self._in_episode().passes]

    def action_masks(self) -> np.ndarray:
        """Bool, one for each action: False for one that would change nothing, because it does nothing, repeats
        another action, or changed nothing in this very state."""
        episode = self._in_episode()
        idle = set(self._idle)
        for flag, changed in zip(reversed(episode.passes), reversed(episode.values["changed"])):
            if changed:
                break
            idle.add(flag)
        masks = np.array([name not in idle for name in self.action_space.names])
        return masks if masks.any() else np.ones_like(masks)

    @property
    def baseline_degenerate(self) -> bool | None:
        """Whether the reward's baseline does not make this program smaller, as -Oz does not make debian-v0's lz4:
        then a reward is no share of what the baseline gains, and means of rewards leave the program out. None: there
        is no baseline."""
        rule = self._reward_rule
        if rule is None or rule.baseline is None:
            return None
        return bool(self._at_start(rule.metric) <= self._at_start(rule.baseline))

    @property
    def episode_reward(self) -> float | None:
        return None if self._reward_rule is None else self._in_episode().total_reward

    @episode_reward.setter
    def episode_reward(self, total: float) -> None:
        """For a wrapper that changes what steps earn; ``state`` has what the passes earned."""
        episode = self._in_episode()
        episode.penalty += total - episode.total_reward

    @property
    def episode_walltime(self) -> float:
        return time.monotonic() - self._since

    @property
    def in_episode(self) -> bool:
        return self._episode is not None

    # ---- shared with the vector of environments

    def _choose(self, options: dict[str, Any], benchmark: str | None = None) -> None:
        check_options(options, _OPTIONS)
        if benchmark is not None:
            options["benchmark"] = benchmark
        if "observation_space" in options:
            self._observe_by_default(options["observation_space"])
        if "reward_space" in options:
            self._reward_rule = self._rule(options["reward_space"])
        if options.get("benchmark") is not None:
            self._chosen = _program(options["benchmark"])
        elif self._given is not None:
            self._chosen = self._given
        elif self._benchmarks is not None:
            self._chosen = _program(draw(self._benchmarks, self.np_random))
        else:
            self._chosen = self._benchmark
        if self._chosen.bitcode is not None:
            self._client().add_program(self._chosen.bitcode, timeout=self.timeout)

    def _first_job(self) -> dict[str, Any]:
        return self._job([], self._wanted(), self._chosen)

    def _start(self, outcome: Outcome) -> None:
        """PassError: the chosen program cannot be had; the environment keeps the one that it had."""
        if outcome.ok or self._chosen is self._given:
            self._given = None
        refuse_failure(outcome)
        self._benchmark = self._chosen
        values = dict(outcome.observed)
        self._episode = PassEpisode([], values, dict(values))
        self._since = time.monotonic()
        self._reward_seen = {}

    def _settle(self, flags: list[str], outcome: Outcome) -> tuple[float, bool, dict[str, Any]]:
        episode = self._in_episode()
        refuse_outage(outcome)
        if not outcome.ok:
            reward = -episode.total_reward if self.default_negates_returns else 0.0
            episode.penalty += reward
            return reward, True, {**self._info(), "error_type": outcome.status, "error_details": outcome.message,
                                  "action_had_no_effect": False}
        before = episode.values
        episode.passes = episode.passes + flags
        baselines = {name: value for name, value in before.items()
                     if name in OBSERVATIONS and OBSERVATIONS[name].is_baseline}
        episode.values = {**baselines, **outcome.observed}
        changed = episode.values["changed"][len(episode.passes) - len(flags):]
        reward = 0.0
        if self._reward_rule is not None:
            metric = self._reward_rule.metric
            if metric not in before:  # the reward was changed in this episode
                before[metric] = self._value_after(episode.passes[:-len(flags)] if flags else episode.passes, metric)
            reward = self._reward(self._reward_rule, before[metric])
            episode.earned += reward
        return reward, False, {**self._info(), "action_had_no_effect": not any(changed)}

    def _wanted(self, *more: str) -> list[str]:
        """What a job of this environment observes. Baselines are asked for once, at the start."""
        names = [self._observation_name, *more]
        rule = self._reward_rule
        if rule is not None:
            names.append(rule.metric)
            if rule.baseline and (self._episode is None or rule.baseline not in self._episode.start):
                names.append(rule.baseline)
        wanted = dict.fromkeys(find_pass_observation(name).base for name in names if name is not None)
        return list(wanted) or [_COUNT]

    def _job(self, passes: Sequence[str], wanted: Sequence[str], benchmark: str | None = None, *,
             fresh: bool = False) -> dict[str, Any]:
        return {"benchmark": benchmark or self.benchmark, "passes": list(passes), "observe": list(wanted),
                "fresh": fresh}

    def _evaluate(self, jobs: list[dict[str, Any]]) -> list[Outcome]:
        return self._client().evaluate_many(jobs, timeout=self.timeout).outcomes

    def _client(self) -> Any:
        """The client, created at the first job if none was given; held, as nothing else may hold the shared one."""
        if self._client_given is not None:
            return self._client_given
        if self._client_made is None:
            self._client_made = shared_client(self._address)
        return self._client_made

    def _is_over(self) -> bool:
        return len(self._in_episode().passes) >= (self.episode_steps or _core.MOST_PASSES)

    def _observation(self) -> Any:
        return None if self._observation_name is None else self._read_observation(self._observation_name)

    def _info(self) -> dict[str, Any]:
        episode = self._in_episode()
        info = {"benchmark": self.benchmark, "passes": len(episode.passes),
                "action_mask": self.action_masks().astype(np.int8)}
        rule = self._reward_rule
        if rule is not None and rule.baseline in episode.start and rule.metric in episode.start:
            info["baseline_degenerate"] = self.baseline_degenerate
        return info

    # ---- inner

    def _rule(self, name: str | None) -> PassReward | None:
        return None if name is None else find_pass_reward(name)

    def _observe_by_default(self, name: str | None) -> None:
        self._observation_space = NoObservation() if name is None else find_pass_observation(name).space
        self._observation_name = name

    def _in_episode(self) -> PassEpisode:
        if self._episode is None:
            raise gym.error.ResetNeeded("call reset() first")
        return self._episode

    def _end_episode(self) -> None:
        if self._episode is not None:
            self._episode.remove_files()
        self._episode = None

    def _flag(self, action: Any) -> str:
        return self.action_space.names[self.action_space.number_of(action)]

    def _see_default_reward(self) -> None:
        """A step that earned it: env.reward counts from here. Not before the step's other rewards are read."""
        if self._reward_rule is not None:
            self._reward_seen[self._reward_rule.name] = self._value(self._reward_rule.metric)

    def _value(self, name: str) -> Any:
        """The observation of the current state, asked for if no job has told it yet."""
        episode = self._in_episode()
        if name not in episode.values:
            episode.values[name] = self._value_after(episode.passes, name)
        return episode.values[name]

    def _value_after(self, passes: Sequence[str], name: str, *, fresh: bool = False) -> Any:
        outcome = self._evaluate([self._job(passes, [name], fresh=fresh)])[0]
        refuse_failure(outcome)
        return outcome.observed[name]

    def _read_observation(self, name: str) -> Any:
        observation, episode, client = find_pass_observation(name), self._in_episode(), self._client()
        base = observation.base
        value = observation.decoded(in_full_or_again(
            base, self._value(base), lambda sha256: client.get_blob(sha256, timeout=self.timeout),
            lambda: self._value_after(episode.passes, base, fresh=True)), self._control_positions)
        return episode.file_of(value) if name == "BitcodeFile" else value

    def _reward(self, rule: PassReward, before: float) -> float:
        start = self._at_start(rule.metric)
        base = self._at_start(rule.baseline) if rule.baseline else 0.0
        return rule.of(before, self._value(rule.metric), start, base)

    def _at_start(self, name: str) -> float:
        episode = self._in_episode()
        if name not in episode.start:
            episode.start[name] = self._value_after([], name)
        return episode.start[name]

    def _read_reward(self, name: str) -> float:
        rule = find_pass_reward(name)
        before = self._reward_seen.get(name, self._at_start(rule.metric))
        reward = self._reward(rule, before)
        self._reward_seen[name] = self._value(rule.metric)
        return reward
