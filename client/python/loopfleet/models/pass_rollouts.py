"""PassRollouts: episodes of a PassAgent side by side over a fleet, none of which waits for another."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from ..client import Client
from ..observed_blob import is_blob
from ..programl import programl_columns
from .errors import ModelError
from .pass_agent import PassAgent
from .pass_state import PassState
from .pass_trajectory import PassTrajectory

_PASS_FAILED = ("COMPILE_ERROR", "COMPILE_TIMEOUT", "COMPILE_OOM")


class PassRollouts:
    """Begins episodes, and goes on with each as soon as the fleet has answered for it.

        rollouts = PassRollouts(client, agent)
        episodes = [rollouts.begin(uri) for uri in programs]
        while rollouts.under_way:
            ended = rollouts.step()

    Use it in one thread.
    """

    def __init__(self, client: Client, agent: PassAgent, *, steps: int = 20, most_instructions: int = 6_000):
        """``steps``: passes in an episode. Graphs of more than ``most_instructions`` instructions are not looked at:
        the agent then decides by the counts. ModelError: ``steps`` is less than 1."""
        if steps < 1:
            raise ModelError(f"an episode has at least one pass, not {steps}")
        self.steps, self.most_instructions = steps, most_instructions
        self.under_way = 0  # episodes whose next answer has not been taken
        self._client, self._agent = client, agent
        self._answers: queue.SimpleQueue[tuple[PassTrajectory, Future]] = queue.SimpleQueue()

    def begin(self, benchmark: str, *, with_graph: bool = True, begun_with: int = 0) -> PassTrajectory:
        """A new episode on a program; step() fills it in. ``with_graph``: false if the agent is to decide by counts
        alone. ``begun_with``: noted in the episode."""
        episode = PassTrajectory(benchmark, with_graph, begun_with)
        self._send([episode])
        return episode

    def step(self, most: int = 64) -> list[PassTrajectory]:
        """Waits for an answer, takes up to ``most`` that are there, lets the agent choose for all of them at once, and
        sends the next jobs. The episodes that have ended: after ``steps`` passes, or after one that failed.
        ModelError: no episode is under way, or a program cannot be had."""
        if not self.under_way:
            raise ModelError("no episode is under way: begin() one")
        going, ended = [], []
        for episode, done in self._arrived(most):
            outcome = done.result()
            if outcome.ok:
                self._take(episode, outcome.observed)
                (going if len(episode.passes) < self.steps else ended).append(episode)
            elif outcome.status in _PASS_FAILED and episode.passes:
                episode.broke = True
                ended.append(episode)
            else:
                raise ModelError(f"{episode.benchmark}: {outcome.status}: {outcome.message}")
        if going:
            for episode, action, log, value in zip(going, *self._agent.draw([each.states[-1] for each in going])):
                episode.passes.append(int(action))
                episode.logs.append(float(log))
                episode.values.append(float(value))
            self._send(going)
        return ended

    def drain(self) -> None:
        """Waits for all answers on their way, and leaves their episodes unfinished."""
        while self.under_way:
            self._answers.get()
            self.under_way -= 1

    def _arrived(self, most: int) -> list[tuple[PassTrajectory, Future]]:
        arrived = [self._answers.get()]
        while len(arrived) < most and not self._answers.empty():
            arrived.append(self._answers.get())
        self.under_way -= len(arrived)
        return arrived

    def _send(self, episodes: Sequence[PassTrajectory]) -> None:
        self.under_way += len(episodes)
        for episode, future in zip(episodes, self._client.submit_jobs([self._job(episode) for episode in episodes])):
            future.add_done_callback(lambda done, episode=episode: self._answers.put((episode, done)))

    def _job(self, episode: PassTrajectory) -> dict[str, Any]:
        wants_graph = episode.with_graph and (not episode.sizes or episode.sizes[-1] <= self.most_instructions)
        return {"benchmark": episode.benchmark, "passes": [self._agent.actions[action] for action in episode.passes],
                "observe": ["InstCount", "Programl"] if wants_graph else ["InstCount"]}

    def _take(self, episode: PassTrajectory, observed: dict[str, Any]) -> None:
        graph = None
        if is_blob(observed.get("Programl")):  # too large for an outcome, so for the agent as well
            episode.with_graph = False
        elif "Programl" in observed:
            graph = self._agent.vocabulary.encode(programl_columns(observed["Programl"]))
            episode.saw_graphs += 1
        inst_count = observed["InstCount"]
        episode.sizes.append(int(inst_count[0]))
        episode.states.append(PassState.of(inst_count, episode.sizes[0], episode.passes, len(self._agent.actions),
                                           self.steps, graph))
