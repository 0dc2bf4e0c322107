"""DQN: an agent that learns the values of actions by temporal differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .errors import ModelError, need
from .mlp import legal_best
from .model_file import blaming_file, check_agent, options_of, read_model, write_model
from .replay import Replay, Transitions
from .schedule_agent import ScheduleAgent
from .training import Policy, Returns, need_legal, need_same_step, random_actions, spaces_of, squash, unmeasured

_WIDTH = 128
_TARGET_EVERY = 250  # updates, then the target network is the online one
_WARM_UP = 1000      # transitions before the first update


class DQN(ScheduleAgent):
    """A double DQN with a replay and masks of legal actions, over networks with two layers of 128.

        agent = DQN.for_envs(envs)
        agent.train(envs, 16_000)          # envs: WalkVectorEnv, or any that has its masks
        agent.act(observations, masks)     # int64[environments]
    """

    def __init__(self, features: int, actions: Sequence[str], *, rate: float = 5e-4, gamma: float = 1.0,
                 batch: int = 128, memory: int = 20_000, priority: float = 0.0, seed: int = 1):
        """``features``: numbers in an observation; ``actions``: names, in the order of the space.
        ``memory``: transitions kept; ``priority``: 0 draws them evenly, 1 by their errors."""
        self._torch = torch = need("torch", "models,torch")
        if not actions:
            raise ModelError("a DQN needs at least one action")
        self.features, self.actions = features, list(actions)
        self.gamma, self.batch = gamma, batch
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self._online, self._target = self._network(), self._network()
        self._target.load_state_dict(self._online.state_dict())
        self._optimizer = torch.optim.Adam(self._online.parameters(), lr=rate)
        self._rng = np.random.default_rng(seed)
        self.replay = Replay(memory, features, len(self.actions), priority)
        self.updates = 0

    @classmethod
    def for_envs(cls, envs: Any, **options: Any) -> DQN:
        """For the observations and actions of a vector environment."""
        return cls(*spaces_of(envs), **options)

    def _network(self) -> Any:
        nn = self._torch.nn
        return nn.Sequential(nn.Linear(self.features, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _WIDTH), nn.ReLU(),
                             nn.Linear(_WIDTH, len(self.actions)))

    def values(self, observations: np.ndarray) -> np.ndarray:
        """float32[rows, actions]: what is still to be earned after each action; observations
        float[rows, features] as environments give them."""
        with self._torch.no_grad():
            return self._online(self._torch.from_numpy(squash(observations))).numpy()

    def liking(self, observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        return self.values(observations)

    def act(self, observations: np.ndarray, masks: np.ndarray, chance: float = 0.0) -> np.ndarray:
        """int64[rows]: the best legal actions, or, by ``chance`` from 0 to 1, random legal ones.
        ModelError: a row of ``masks`` allows none."""
        masks = need_legal(masks)
        best = legal_best(self.values(observations), masks)
        return np.where(self._rng.random(len(best)) < chance, random_actions(masks, self._rng), best)

    def learn(self, updates: int = 1) -> float:
        """Steps of Adam on batches drawn from the replay; the mean loss. ModelError: the replay is
        empty."""
        if not len(self.replay):
            raise ModelError("the replay is empty: nothing to learn from")
        torch, losses = self._torch, []
        for _ in range(updates):
            places, rows, importance = self.replay.draw(self.batch, self._rng)
            seen, taken, earned, then, legal, over = map(torch.from_numpy, rows)
            with torch.no_grad():
                chosen = self._online(then).masked_fill(~legal, -torch.inf).argmax(-1)
                goal = earned + self.gamma * (1 - over) * self._target(then).gather(1, chosen[:, None])[:, 0]
            value = self._online(seen).gather(1, taken[:, None])[:, 0]
            losses_of = torch.nn.functional.smooth_l1_loss(value, goal, reduction="none")
            loss = (torch.from_numpy(importance) * losses_of).mean()
            self._optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self._online.parameters(), 10.0)
            self._optimizer.step()
            self.replay.correct(places, (goal - value).detach().numpy())
            losses.append(loss.item())
            self.updates += 1
            if self.updates % _TARGET_EVERY == 0:
                self._target.load_state_dict(self._online.state_dict())
        return float(np.mean(losses))

    def train(self, envs: Any, steps: int, *, updates: int = 2, on_mark: Callable[[str], Any] | None = None) -> Returns:
        """At least ``steps`` steps of a vector environment that resets in the same step; ``updates``
        after each step of all. Actions become less random over the first 60 % of the steps.
        ``on_mark`` is told how it goes, as text. ModelError: it resets in another step."""
        need_same_step(envs)
        episodes = Returns(envs.num_envs, on_mark)
        observation, info = envs.reset(seed=int(self._rng.integers(1 << 31)))
        mask = info["action_mask"]
        while episodes.steps < steps:
            chance = max(0.05, 1 - episodes.steps / steps / 0.6)
            action = self.act(observation, mask, chance)
            following, reward, terminated, truncated, info = envs.step(action)
            over = terminated | truncated
            known = ~unmeasured(info, truncated)
            # Where an episode ended, ``following`` is the next one's start; it plays no part.
            self.replay.add(Transitions(squash(observation), action, reward, squash(following), info["action_mask"],
                                        over).where(known))
            observation, mask = following, info["action_mask"]
            episodes.add(reward, over)
            if self.replay.count >= max(1, min(_WARM_UP, steps // 2)):
                self.learn(updates)
            if episodes.steps % (40 * envs.num_envs) == 0:
                episodes.mark(f", {chance:.0%} at random")
        return episodes

    def policy(self, temperature: float = 0.05, chance: float = 0.05) -> Policy:
        """Softly greedy, since the same walk again would find nothing new: actions by the softmax
        of values / ``temperature``, by ``chance`` any legal one."""
        def act(observation: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> int:
            legal = np.flatnonzero(need_legal(mask[None])[0])
            if rng.random() < chance:
                return int(rng.choice(legal))
            values = self.values(observation[None])[0].astype(np.float64)[legal]
            weights = np.exp((values - values.max()) / temperature)
            return int(rng.choice(legal, p=weights / weights.sum()))
        return act

    def layers(self) -> list[np.ndarray]:
        """Copies of weight and bias of each layer, as mlp.forward() takes them."""
        return [value.numpy().copy() for value in self._online.state_dict().values()]

    def save(self, path: str | Path) -> None:
        """The network, as one file (.npz); neither the replay nor the optimizer's state."""
        arrays = {name: value.numpy() for name, value in self._online.state_dict().items()}
        write_model(path, "DQN", {"features": self.features, "actions": self.actions, "gamma": self.gamma}, arrays)

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> DQN:
        """Reads a file of save(), and runs none of it. BadModelFile."""
        facts, arrays = read_model(path, "DQN")
        with blaming_file(path):
            features, actions = int(facts["features"]), list(facts["actions"])
            check_agent(features, actions)
            options = {**options_of(facts, float, "gamma"), **options}
        agent = cls(features, actions, **options)
        with blaming_file(path):
            weights = {name: agent._torch.from_numpy(value) for name, value in arrays.items()}
            agent._online.load_state_dict(weights)
            agent._target.load_state_dict(weights)
        return agent
