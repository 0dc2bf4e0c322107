"""A DQN trained by many processes, in the manner of Ape-X: actors walk environments and send their
transitions in batches; the learner keeps them in a replay drawn by priority, and publishes its
network. All actors measure on the cluster of one coordinator."""

from __future__ import annotations

import multiprocessing
import os
import queue
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..client import Client
from .dqn import DQN
from .errors import ModelError
from .mlp import forward, legal_best
from .replay import Transitions
from .training import Returns, need_legal, random_actions, squash, unmeasured

_WARM_UP = 500        # transitions before the first update
_PUBLISH_EVERY = 20   # updates
_MOST_WAITING = 4     # batches of each actor that the learner has not taken; then the actor waits
_JOIN_S = 10.0


class ActorFailed(ModelError):
    """An actor's process ended before the training did."""


@dataclass(frozen=True)
class ActorOptions:
    """What every actor walks; the arguments of WalkVectorEnv and LoopTuneEnv."""

    benchmarks: Sequence[str]
    envs: int = 4                     # of each actor
    batch: int = 32                   # steps in a message, at least
    action_space: str | Sequence[str] = "looptune"
    reward_space: str = "log_speedup"
    environment: dict[str, Any] = field(default_factory=dict)  # further arguments


@dataclass(frozen=True)
class Distributed:
    """What a distributed training did."""

    agent: DQN
    returns: Returns
    steps: list[int]       # of each actor
    updates: int
    published: int         # versions of the network
    seconds: float         # with the start of the processes
    steps_a_second: float  # from when all actors had sent something; NaN: it was over by then


@dataclass(frozen=True)
class _Batch:
    actor: int
    version: int  # of the network that it was walked with
    steps: int    # walked; those without a figure have no row
    rows: Transitions
    errors: np.ndarray
    returns: list[float]  # of episodes that ended


@dataclass(frozen=True)
class _Failed:
    actor: int
    said: str


def train_distributed(options: ActorOptions, steps: int, *, actors: int = 8, address: str | None = None,
                      keys: str | None = None, agent: DQN | None = None, updates: int = 4, seed: int = 1,
                      on_mark: Callable[[str], Any] | None = None) -> Distributed:
    """Trains for at least ``steps`` steps of all ``actors`` together, ``updates`` for each
    message. ``address`` and ``keys`` are the coordinator's, found as by Client. Gives ``agent``, or
    a new DQN with priority 0.6, in the result.

    Actor i acts at random by the chance 0.4 ** (1 + 7 i / (actors - 1)). The processes are
    spawned: call this below ``if __name__ == "__main__"``. ActorFailed: one ended, with what it
    said; no process is left behind.
    """
    if actors < 1 or steps < 1:
        raise ModelError(f"actors and steps must be at least 1, not {actors} and {steps}")
    if not options.benchmarks or isinstance(options.benchmarks, str) or options.envs < 1 or options.batch < 1:
        raise ModelError("actors need a list of benchmarks, and envs and batch of at least 1")
    features, names = _spaces_of(options)
    if agent is None:
        agent = DQN(features, names, priority=0.6, seed=seed)
    elif (agent.features, agent.actions) != (features, names):
        raise ModelError(f"the agent sees {agent.features} numbers and has the actions {', '.join(agent.actions)}; the "
                         f"environments have {features} and {', '.join(names)}")
    context = multiprocessing.get_context("spawn")
    published = _Published(context, agent.layers())
    waiting = context.Queue(_MOST_WAITING * actors)
    stop = context.Event()
    client = Client(address, keys=keys)  # a copy of it in each process; it connects there
    processes = [context.Process(target=_act, name=f"loopfleet-actor-{number}", daemon=True,
                                 args=(number, actors, options, client, published, waiting, stop, seed, os.getpid()))
                 for number in range(actors)]
    learner = _Learner(agent, published, updates, Returns(1, on_mark), actors)
    since = time.monotonic()
    full_since, steps_before = since, 0  # when all actors had sent something
    try:
        for process in processes:
            process.start()
        while learner.returns.steps < steps:
            learner.take(_next(waiting, processes))
            if not steps_before and all(learner.steps):
                full_since, steps_before = time.monotonic(), learner.returns.steps
        until = time.monotonic()
    finally:
        stop.set()
        _end(processes, waiting)
    walked = learner.returns.steps - steps_before if steps_before else 0
    return Distributed(agent, learner.returns, learner.steps, agent.updates, published.version,
                       time.monotonic() - since, walked / (until - full_since) if walked else float("nan"))


class _Learner:
    def __init__(self, agent: DQN, published: _Published, updates: int, returns: Returns, actors: int):
        self.agent, self.returns, self.steps = agent, returns, [0] * actors
        self._published, self._updates, self._next_publish, self._taken = published, updates, 0, 0

    def take(self, batch: _Batch) -> None:
        self.agent.replay.add(batch.rows, batch.errors)
        self.steps[batch.actor] += batch.steps
        self.returns.add_episodes(batch.returns, batch.steps)
        self._taken += 1
        if self.agent.replay.count >= _WARM_UP:
            self.agent.learn(self._updates)
            if self.agent.updates >= self._next_publish:
                self._published.write(self.agent.layers())
                self._next_publish = self.agent.updates + _PUBLISH_EVERY
        if self._taken % 20 == 0:
            self.returns.mark(f", network {batch.version} of {self._published.version}")


class _Published:
    """The network's layers in memory that all processes share."""

    def __init__(self, context: Any, layers: list[np.ndarray]):
        self._shapes = [layer.shape for layer in layers]
        self._numbers = context.RawArray("f", sum(layer.size for layer in layers))
        self._version = context.Value("q", 0)
        self.write(layers)

    @property
    def version(self) -> int:
        return self._version.value

    def write(self, layers: list[np.ndarray]) -> None:
        with self._version.get_lock():
            np.frombuffer(self._numbers, np.float32)[:] = np.concatenate([layer.ravel() for layer in layers])
            self._version.value += 1

    def read(self) -> tuple[int, list[np.ndarray]]:
        with self._version.get_lock():
            numbers, version = np.frombuffer(self._numbers, np.float32).copy(), self._version.value
        ends = np.cumsum([int(np.prod(shape)) for shape in self._shapes])
        return version, [part.reshape(shape) for part, shape in zip(np.split(numbers, ends[:-1]), self._shapes)]


def _spaces_of(options: ActorOptions) -> tuple[int, list[str]]:
    from ..envs import LoopTuneEnv

    env = LoopTuneEnv(options.benchmarks[0], action_space=options.action_space, reward_space=None,
                      **options.environment)
    return env.observation_space.shape[0], env.action_space.names


def _next(waiting: Any, processes: list[Any]) -> _Batch:
    while True:
        for number, process in enumerate(processes):
            if process.exitcode:  # killed; one that says why ends with 0
                raise ActorFailed(f"actor {number} ended with exit code {process.exitcode}")
        try:
            got = waiting.get(timeout=1.0)
        except queue.Empty:
            for number, process in enumerate(processes):
                if process.exitcode is not None:
                    raise ActorFailed(f"actor {number} ended with exit code {process.exitcode}") from None
            continue
        if isinstance(got, _Failed):
            raise ActorFailed(f"actor {got.actor} failed:\n{got.said}")
        return got


def _end(processes: list[Any], waiting: Any) -> None:
    until = time.monotonic() + _JOIN_S
    started = [process for process in processes if process.pid is not None]
    while any(process.is_alive() for process in started) and time.monotonic() < until:
        try:
            waiting.get(timeout=0.05)  # what is under way may keep an actor from ending
        except queue.Empty:
            pass
    for process in started:
        if process.is_alive():
            process.terminate()
        process.join()
    waiting.close()
    waiting.cancel_join_thread()


def _act(number: int, actors: int, options: ActorOptions, client: Client, published: _Published,
         waiting: Any, stop: Any, seed: int, parent: int) -> None:
    try:
        with client:
            for batch in _walked(number, actors, options, client, published, seed):
                if not _put(batch, waiting, stop, parent):
                    break
    except KeyboardInterrupt:
        pass
    except BaseException:  # the learner raises it
        _put(_Failed(number, traceback.format_exc()), waiting, stop, parent)
        waiting.close()
        waiting.join_thread()
    finally:
        waiting.cancel_join_thread()


def _put(what: Any, waiting: Any, stop: Any, parent: int) -> bool:
    """False: the training is over, or the learner is gone."""
    while not stop.is_set() and os.getppid() == parent:
        try:
            waiting.put(what, timeout=0.5)
            return True
        except queue.Full:
            continue
    return False


def _walked(number: int, actors: int, options: ActorOptions, client: Client, published: _Published, seed: int) -> Any:
    from ..envs import LoopTuneEnv, WalkVectorEnv

    rng = np.random.default_rng([seed, number])
    chance = 0.4 ** (1 + 7 * number / max(1, actors - 1))
    envs = WalkVectorEnv(options.envs, env_class=LoopTuneEnv, autoreset_mode="SameStep", client=client,
                         benchmarks=list(options.benchmarks), action_space=options.action_space,
                         reward_space=options.reward_space, **options.environment)
    observation, info = envs.reset(seed=int(rng.integers(1 << 31)))
    seen, mask = squash(observation), info["action_mask"].astype(bool)
    version, layers = published.read()
    earned = np.zeros(options.envs)
    rows: list[tuple[np.ndarray, ...]] = []
    returns: list[float] = []
    while True:
        if published.version != version:
            version, layers = published.read()
        values = forward(layers, seen)
        need_legal(mask)
        action = np.where(rng.random(len(values)) < chance, random_actions(mask, rng), legal_best(values, mask))
        following, reward, terminated, truncated, info = envs.step(action)
        over = terminated | truncated
        then, legal = squash(following), info["action_mask"].astype(bool)
        best = np.where(legal, forward(layers, then), -np.inf).max(-1)
        error = reward + np.where(over, 0.0, best) - values[np.arange(len(action)), action]
        known = ~unmeasured(info, truncated)
        rows.append(tuple(column[known] for column in (seen, action, reward.astype(np.float32), then, legal,
                                                       over.astype(np.float32), error)))
        earned += reward
        returns += earned[over].tolist()
        earned[over] = 0
        seen, mask = then, legal
        if len(rows) * options.envs >= options.batch:
            *columns, errors = (np.concatenate(column) for column in zip(*rows))
            yield _Batch(number, version, len(rows) * options.envs, Transitions(*columns), errors, returns)
            rows, returns = [], []
