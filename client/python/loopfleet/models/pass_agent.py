"""PassAgent: an agent that orders LLVM passes. It reads the program's graph by GATv2 and learns by PPO."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from ..client import Client
from ..observed_blob import is_blob
from ..programl import programl_columns
from .errors import ModelError, need
from .model_file import blaming_file, read_model, write_model
from .pass_state import PassState
from .pass_trajectory import PassTrajectory
from .program_graph import Vocabulary
from .program_sizes import observe_programs


class PassAgent:
    """A policy and a value over states of a program, learned by clipped PPO. They share an encoder
    (state_encoder.py), or have one each. It computes on the CPU.

        agent = PassAgent.for_programs(client, programs)
        train_pass_agent(agent, client, programs, 24_000)
        agent.save("agent.npz")

    PassRollouts lets it act.
    """

    def __init__(self, vocabulary: Vocabulary, actions: Sequence[str] | None = None, *, shared: bool = True,
                 rate: float = 5e-4, gamma: float = 1.0, gae: float = 0.95, clip: float = 0.2, epochs: int = 3,
                 minibatch: int = 64, entropy: float = 0.01, seed: int = 1):
        """``actions``: flags of passes, those of Passes19 if None. ``shared``: one encoder for policy and value.
        ``epochs``: how often an update uses each state, ``minibatch`` of them at once. MissingPackage: there is no
        torch. ModelError: there are no actions, or ``epochs`` or ``minibatch`` is less than 1."""
        self._torch = torch = need("torch", "models,torch")
        from .state_encoder import StateEncoder

        self.vocabulary, self.shared = vocabulary, shared
        self.actions = [flag for flag, _ in _core.pass_actions("Passes19")] if actions is None else list(actions)
        if not self.actions:
            raise ModelError("a PassAgent needs at least one action")
        if min(epochs, minibatch) < 1:
            raise ModelError(f"epochs and minibatch must be at least 1, not {epochs} and {minibatch}")
        self.gamma, self.gae, self.clip, self.entropy = gamma, gae, clip, entropy
        self.epochs, self.minibatch = epochs, minibatch
        self.notes: dict[str, Any] = {}  # what the caller wants its file to keep, such as its curve; as JSON has it
        self._draws = torch.Generator()
        nn = torch.nn
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            encoders = {name: StateEncoder(len(vocabulary), PassState.width(len(self.actions)))
                        for name in (("encoder",) if shared else ("encoder", "critic_encoder"))}
            self._networks = nn.ModuleDict({**encoders, "actor": nn.Linear(StateEncoder.WIDTH, len(self.actions)),
                                            "critic": nn.Linear(StateEncoder.WIDTH, 1)})
            nn.init.orthogonal_(self._networks["actor"].weight, 0.01)
            self._draws.set_state(torch.get_rng_state())  # actions do not repeat the numbers that the weights had
        self._optimizer = torch.optim.Adam(self._networks.parameters(), lr=rate, eps=1e-5)

    @classmethod
    def for_programs(cls, client: Client, programs: Sequence[str], actions: Sequence[str] | None = None,
                     **options: Any) -> PassAgent:
        """An agent with the vocabulary of these programs' graphs: the texts that at least two of them have, or all if
        there is one graph. A program counts once, and not at all if its graph is too large for an outcome.
        ``programs``: URIs; the other arguments are the class's. ModelError: a program cannot be had, or ``programs``
        is no list."""
        outcomes = observe_programs(client, programs, "Programl")
        for uri, outcome in outcomes.items():
            if not outcome.ok:
                raise ModelError(f"{uri}: {outcome.status}: {outcome.message}")
        graphs = [outcome.observed["Programl"] for outcome in outcomes.values()]
        return cls(Vocabulary.of(programl_columns(graph) for graph in graphs if not is_blob(graph)), actions, **options)

    def _forward(self, states: Sequence[PassState]) -> tuple[Any, Any]:
        seen = self._networks["encoder"](states)
        valued = seen if self.shared else self._networks["critic_encoder"](states)
        policy = self._torch.distributions.Categorical(logits=self._networks["actor"](seen))
        return policy, self._networks["critic"](valued).squeeze(1)

    def probabilities(self, states: Sequence[PassState]) -> np.ndarray:
        """float64[states, actions]; each row sums to 1."""
        with self._torch.no_grad():
            policy, _ = self._forward(states)
        found = policy.probs.double().numpy()
        return found / found.sum(-1, keepdims=True)

    def draw(self, states: Sequence[PassState]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(actions int64, logarithms of their probabilities float32, values float32), each [states]. Actions are drawn
        by their probabilities; a value is what the agent expects to earn from the state on."""
        torch = self._torch
        with torch.no_grad():
            policy, values = self._forward(states)
            actions = torch.multinomial(policy.probs, 1, generator=self._draws)[:, 0]
            return actions.numpy(), policy.log_prob(actions).numpy(), values.numpy()

    def reseed(self, seed: int) -> None:
        """The same seed repeats what draw() and update() choose by chance."""
        self._draws.manual_seed(seed)

    def update(self, episodes: Sequence[PassTrajectory]) -> float:
        """Learns from episodes by clipped PPO. The mean entropy of the policy meanwhile, in nats. ModelError: the
        episodes have no passes."""
        torch = self._torch
        nn = torch.nn
        states = [state for episode in episodes for state in episode.states[:len(episode.passes)]]
        if not states:
            raise ModelError("the episodes have no passes: nothing to learn from")
        actions = torch.tensor([action for episode in episodes for action in episode.passes])
        before = torch.tensor([each for episode in episodes for each in episode.log_probabilities])
        advantages = torch.tensor([each for episode in episodes for each in episode.advantages(self.gamma, self.gae)])
        returns = advantages + torch.tensor([value for episode in episodes for value in episode.values])
        entropies = []
        for _ in range(self.epochs):
            for rows in torch.randperm(len(states), generator=self._draws).split(self.minibatch):
                policy, values = self._forward([states[row] for row in rows])
                gain = advantages[rows]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8) if len(rows) > 1 else gain
                ratio = torch.exp(policy.log_prob(actions[rows]) - before[rows])
                of_policy = -torch.min(ratio * gain, ratio.clamp(1 - self.clip, 1 + self.clip) * gain).mean()
                of_value = nn.functional.mse_loss(values, returns[rows])
                entropy = policy.entropy().mean()
                entropies.append(float(entropy.detach()))
                self._optimizer.zero_grad()
                (of_policy + 0.5 * of_value - self.entropy * entropy).backward()
                nn.utils.clip_grad_norm_(self._networks.parameters(), 0.5)
                self._optimizer.step()
        return float(np.mean(entropies))

    def save(self, path: str | Path) -> None:
        """Networks, vocabulary, actions and ``notes`` as one file (.npz); not the optimizer's state."""
        arrays = {name: value.numpy() for name, value in self._networks.state_dict().items()}
        write_model(path, "PassAgent", {"actions": self.actions, "shared": self.shared,
                                        "texts": self.vocabulary.texts, "notes": self.notes}, arrays)

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> PassAgent:
        """Reads a file of save(), and runs none of it. ``options``: rate, gamma, ... as the class has them, which the
        file does not keep. BadModelFile."""
        facts, arrays = read_model(path, "PassAgent")
        with blaming_file(path):
            vocabulary, actions, shared = Vocabulary(facts["texts"]), list(facts["actions"]), facts["shared"]
            notes = facts["notes"]
            if not actions:
                raise ValueError("an agent without actions")
        agent = cls(vocabulary, actions, shared=shared, **options)
        agent.notes = notes
        with blaming_file(path):
            agent._networks.load_state_dict({name: agent._torch.from_numpy(value) for name, value in arrays.items()})
        return agent
