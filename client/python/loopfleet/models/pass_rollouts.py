"""PassRollouts: episodes of a PassAgent side by side over a fleet, none of which waits for another."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from ..client import Client
from ..observed_blob import is_blob
from ..pass_failures import PASS_FAILURES
from ..programl import programl_columns
from .errors import ModelError
from .pass_agent import PassAgent
from .pass_state import PassState
from .pass_trajectory import PassTrajectory


class PassRollouts:
    """Begins episodes, and goes on with each as soon as the fleet has answered for it.

        rollouts = PassRollouts(client, agent)
        episodes = [rollouts.begin(uri) for uri in programs]
        while rollouts.under_way:
            ended = rollouts.step()

    Use it in one thread.
    """

    def __init__(self, client: Client, agent: PassAgent, *, episode_steps: int = 20, most_instructions: int = 6_000):
        """``episode_steps``: passes in an episode. The graph of a state is not looked at if this or the state before
        has more than ``most_instructions`` instructions: the agent then decides by the counts. ModelError:
        ``episode_steps`` is less than 1."""
        if episode_steps < 1:
            raise ModelError(f"an episode has at least one pass, not {episode_steps}")
        self.episode_steps, self.most_instructions = episode_steps, most_instructions
        self._client, self._agent = client, agent
        self._awaited = 0  # jobs whose answer has not been taken
        self._ended: list[PassTrajectory] = []  # for the next step()
        self._answers: queue.SimpleQueue[tuple[PassTrajectory, Future]] = queue.SimpleQueue()

    @property
    def under_way(self) -> int:
        """Episodes that step() has yet to return, or to raise an error for."""
        return self._awaited + len(self._ended)

    def begin(self, benchmark: str, *, with_graph: bool = True, begun_with: int = 0) -> PassTrajectory:
        """A new episode on a program; step() fills it in. ``with_graph``: false if the agent is to decide by counts
        alone. ``begun_with``: noted in the episode."""
        episode = PassTrajectory(benchmark, with_graph, begun_with)
        self._send([episode])
        return episode

    def step(self, most: int = 64) -> list[PassTrajectory]:
        """Waits for an answer, takes up to ``most`` that are there, lets the agent choose for all of them at once, and
        sends the next jobs. The episodes that have ended: after ``episode_steps`` passes, or after one that failed.

        ModelError: no episode is under way, or a program cannot be had. The client's errors (loopfleet.errors), if a
        job has no outcome, or none can be sent, which ends the episodes that wait for that. All others stay under way:
        the next step() goes on with them, and returns those that have ended meanwhile."""
        if not self.under_way:
            raise ModelError("no episode is under way: begin() one")
        going: list[PassTrajectory] = []
        failed: tuple[PassTrajectory, Future] | None = None
        for episode, done in self._arrived(most):
            outcome = done.result() if done.exception() is None else None
            if outcome is None or not (outcome.ok or outcome.status in PASS_FAILURES and episode.passes):
                if failed is None:
                    failed = episode, done
                else:  # for the next step()
                    self._await(episode, done)
                continue
            if outcome.ok:
                self._take(episode, outcome.observed)
            else:
                episode.broke = True
            over = episode.broke or len(episode.passes) == self.episode_steps
            (self._ended if over else going).append(episode)
        if going:
            for episode, action, log, value in zip(going, *self._agent.draw([each.states[-1] for each in going])):
                episode.passes.append(int(action))
                episode.log_probabilities.append(float(log))
                episode.values.append(float(value))
            self._send(going)
        if failed is not None:
            episode, done = failed
            outcome = done.result()
            raise ModelError(f"{episode.benchmark}: {outcome.status}: {outcome.message}")
        ended, self._ended = self._ended, []
        return ended

    def abandon(self) -> None:
        """Gives up all episodes: waits for the answers on their way, and leaves the episodes unfinished."""
        self._ended = []
        while self._awaited:
            self._answers.get()
            self._awaited -= 1

    def _arrived(self, most: int) -> list[tuple[PassTrajectory, Future]]:
        arrived = [] if self._ended else [self._answers.get()]
        while len(arrived) < most and not self._answers.empty():
            arrived.append(self._answers.get())
        self._awaited -= len(arrived)
        return arrived

    def _send(self, episodes: Sequence[PassTrajectory]) -> None:
        futures = self._client.submit_jobs([self._job(episode) for episode in episodes])
        for episode, future in zip(episodes, futures):
            self._await(episode, future)

    def _await(self, episode: PassTrajectory, future: Future) -> None:
        self._awaited += 1
        future.add_done_callback(lambda done: self._answers.put((episode, done)))

    def _job(self, episode: PassTrajectory) -> dict[str, Any]:
        wants_graph = episode.with_graph and (not episode.sizes or episode.sizes[-1] <= self.most_instructions)
        return {"benchmark": episode.benchmark, "passes": [self._agent.actions[action] for action in episode.passes],
                "observe": ["InstCount", "Programl"] if wants_graph else ["InstCount"]}

    def _take(self, episode: PassTrajectory, observed: dict[str, Any]) -> None:
        inst_count, graph = observed["InstCount"], None
        if is_blob(observed.get("Programl")):  # too large for an outcome, so for the agent as well
            episode.with_graph = False
        elif "Programl" in observed and inst_count[0] <= self.most_instructions:
            graph = self._agent.vocabulary.encode(programl_columns(observed["Programl"]))
            episode.saw_graphs += 1
        episode.sizes.append(int(inst_count[0]))
        episode.states.append(PassState.of(inst_count, episode.sizes[0], episode.passes, len(self._agent.actions),
                                           self.episode_steps, graph))
