"""CompilerGym's wrappers of environments with the older interface (loopfleet.compiler_gym). What a wrapper does not
define, its environment does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from ..envs import NamedDiscrete


class CompilerEnvWrapper:
    """Passes everything to ``env``."""

    _space: gym.Space | None = None  # of what a wrapper makes of observations

    def __init__(self, env: Any):
        self.env = env

    def __getattr__(self, name: str) -> Any:
        if name == "env":  # not set yet, as while it is copied
            raise AttributeError(name)
        return getattr(self.env, name)

    def __enter__(self) -> CompilerEnvWrapper:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def unwrapped(self) -> Any:
        return self.env.unwrapped

    # Properties, as assigning to the wrapper must reach the environment.

    @property
    def benchmark(self) -> Any:
        return self.env.benchmark

    @benchmark.setter
    def benchmark(self, benchmark: str) -> None:
        self.env.benchmark = benchmark

    @property
    def reward_space(self) -> Any:
        return self.env.reward_space

    @reward_space.setter
    def reward_space(self, name: str | None) -> None:
        self.env.reward_space = name

    @property
    def observation_space(self) -> Any:
        return self.env.observation_space if self._space is None else self._space

    @observation_space.setter
    def observation_space(self, space: str | gym.Space | None) -> None:
        """The name of the environment's; a Gymnasium space is the wrapper's own."""
        self._space = space if isinstance(space, gym.Space) else None
        if self._space is None:
            self.env.observation_space = space

    def reset(self, *arguments: Any, **named: Any) -> Any:
        return self.env.reset(*arguments, **named)

    def step(self, action: Any, **named: Any) -> tuple[Any, Any, bool, dict[str, Any]]:
        return self.multistep(action if isinstance(action, (list, tuple)) else [action], **named)

    def multistep(self, actions: Iterable[Any], **named: Any) -> tuple[Any, Any, bool, dict[str, Any]]:
        return self.env.multistep(actions, **named)

    def fork(self) -> CompilerEnvWrapper:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.env = self.env.fork()
        return other


class ActionWrapper(CompilerEnvWrapper):
    """``action(action)`` gives the environment's action."""

    def multistep(self, actions: Iterable[Any], **named: Any) -> tuple[Any, Any, bool, dict[str, Any]]:
        return self.env.multistep([self.action(action) for action in actions], **named)

    def action(self, action: Any) -> Any:
        raise NotImplementedError


class ObservationWrapper(CompilerEnvWrapper):
    """``convert_observation(observation)`` gives what the caller sees."""

    def reset(self, *arguments: Any, **named: Any) -> Any:
        return self.convert_observation(self.env.reset(*arguments, **named))

    def multistep(self, actions: Iterable[Any], **named: Any) -> tuple[Any, Any, bool, dict[str, Any]]:
        observation, *rest = self.env.multistep(actions, **named)
        return self.convert_observation(observation), *rest

    def convert_observation(self, observation: Any) -> Any:
        raise NotImplementedError


class RewardWrapper(CompilerEnvWrapper):
    """``convert_reward(reward)`` gives what the caller earns; the episode's total counts that, too."""

    def multistep(self, actions: Iterable[Any], **named: Any) -> tuple[Any, Any, bool, dict[str, Any]]:
        observation, reward, *rest = self.env.multistep(actions, **named)
        converted = self.convert_reward(reward)
        # A list is of other rewards than the total's.
        if self.unwrapped.episode_reward is not None and not isinstance(reward, list):
            self.unwrapped.episode_reward += converted - reward
        return observation, converted, *rest

    def convert_reward(self, reward: Any) -> Any:
        raise NotImplementedError


class TimeLimit(CompilerEnvWrapper):
    """Ends an episode after ``max_episode_steps`` actions."""

    def __init__(self, env: Any, max_episode_steps: int):
        super().__init__(env)
        self._most = max_episode_steps
        self._steps = 0

    def reset(self, *arguments: Any, **named: Any) -> Any:
        self._steps = 0
        return super().reset(*arguments, **named)

    def multistep(self, actions: Iterable[Any], **named: Any) -> tuple[Any, Any, bool, dict[str, Any]]:
        actions = list(actions)
        observation, reward, done, info = super().multistep(actions, **named)
        self._steps += len(actions)
        if self._steps >= self._most:
            info["TimeLimit.truncated"] = not done or info.get("TimeLimit.truncated", False)  # the environment's own
            done = True
        return observation, reward, done, info


class IterateOverBenchmarks(CompilerEnvWrapper):
    """Each reset without a benchmark takes the next one, until there are none (StopIteration). A fork goes on by
    itself from where this one is; with ``fork_shares_iterator`` each benchmark goes to one of the two."""

    def __init__(self, env: Any, benchmarks: Iterable[str], fork_shares_iterator: bool = False):
        super().__init__(env)
        self._benchmarks: Iterator[str] = iter(benchmarks)
        self._fork_shares_iterator = fork_shares_iterator

    def fork(self) -> IterateOverBenchmarks:
        other = super().fork()
        if not self._fork_shares_iterator:
            self._benchmarks, other._benchmarks = itertools.tee(self._benchmarks)
        return other

    def reset(self, benchmark: str | None = None, **named: Any) -> Any:
        return super().reset(benchmark=next(self._benchmarks) if benchmark is None else benchmark, **named)


class CycleOverBenchmarks(IterateOverBenchmarks):
    """Each reset takes the next benchmark, over and over."""

    def __init__(self, env: Any, benchmarks: Iterable[str], fork_shares_iterator: bool = False):
        super().__init__(env, itertools.cycle(benchmarks), fork_shares_iterator)


class CycleOverBenchmarksIterator(IterateOverBenchmarks):
    """Each reset takes the next benchmark of ``make_benchmark_iterator()``, which is called again at its end."""

    def __init__(self, env: Any, make_benchmark_iterator: Callable[[], Iterator[str]]):
        super().__init__(env, itertools.chain.from_iterable(make_benchmark_iterator() for _ in itertools.count()))


class RandomOrderBenchmarks(IterateOverBenchmarks):
    """Each reset takes a random benchmark; a fork draws from the same generator."""

    def __init__(self, env: Any, benchmarks: Iterable[str], rng: np.random.Generator | None = None):
        every = list(benchmarks)
        rng = rng or np.random.default_rng()
        super().__init__(env, (every[int(rng.integers(len(every)))] for _ in itertools.count()),
                         fork_shares_iterator=True)


class CommandlineWithTerminalAction(CompilerEnvWrapper):
    """One more action, the last: it ends the episode."""

    def __init__(self, env: Any, terminal: str = "# end-of-episode"):
        super().__init__(env)
        self.action_space = NamedDiscrete([*env.action_space.names, terminal])

    def multistep(self, actions: Iterable[Any], **named: Any) -> tuple[Any, Any, bool, dict[str, Any]]:
        actions = [self.action_space.number_of(action) for action in actions]
        terminal = len(self.action_space.names) - 1
        ends = terminal in actions
        observation, reward, done, info = self.env.multistep(
            actions[:actions.index(terminal)] if ends else actions, **named)
        info["action_mask"] = self._masks(info["action_mask"])
        if ends and not done:
            info["terminal_action"] = True
        return observation, reward, done or ends, info

    def action_masks(self) -> np.ndarray:
        return self._masks(self.env.action_masks())

    def _masks(self, masks: np.ndarray) -> np.ndarray:
        return np.append(masks, masks.dtype.type(1))


class ConstrainedCommandline(ActionWrapper):
    """Only these flags, numbered in their order."""

    def __init__(self, env: Any, flags: Iterable[str], name: str | None = None):
        super().__init__(env)
        self.action_space = NamedDiscrete(list(flags), name or "")
        self._actions = [env.action_space[flag] for flag in self.action_space.names]

    def action(self, action: Any) -> int:
        return self._actions[self.action_space.number_of(action)]

    def reverse_action(self, action: int) -> int:
        """The number here of an environment's action. ValueError: it is none of these flags."""
        return self._actions.index(action)

    @property
    def actions(self) -> list[int]:
        return [self.reverse_action(action) for action in self.env.actions]

    def multistep(self, actions: Iterable[Any], **named: Any) -> tuple[Any, Any, bool, dict[str, Any]]:
        *rest, info = super().multistep(actions, **named)
        info["action_mask"] = self._masks(info["action_mask"])
        return *rest, info

    def action_masks(self) -> np.ndarray:
        return self._masks(self.env.action_masks())

    def _masks(self, masks: np.ndarray) -> np.ndarray:
        few = masks[self._actions]
        return few if few.any() else np.ones_like(few)  # never none, as an agent must choose one
