"""PPO: an agent that learns a policy and its value, in the manner of CleanRL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .errors import ModelError, need
from .model_file import blaming_file, check_agent, options_of, read_model, write_model
from .schedule_agent import ScheduleAgent
from .training import Policy, Returns, need_legal, need_same_step, spaces_of, squash, unmeasured

_WIDTH = 128
_PART = 160  # rows of an update


class PPO(ScheduleAgent):
    """Proximal policy optimisation with masks of legal actions; two layers of 128 with tanh that
    policy and value share.

        agent = PPO.for_envs(envs)
        agent.train(envs, 16_000)          # envs: WalkVectorEnv, or any that has its masks
        agent.act(observations, masks)     # int64[environments], drawn from the policy
    """

    def __init__(self, features: int, actions: Sequence[str], *, rate: float = 1e-3, gamma: float = 1.0,
                 gae: float = 0.95, clip: float = 0.2, epochs: int = 4, horizon: int = 40, entropy: float = 0.01,
                 seed: int = 1):
        """``features``, ``actions``: as DQN's. ``horizon``: steps of each environment between
        updates; ``epochs``: how often an update uses each."""
        self._torch = torch = need("torch", "models,torch")
        if not actions:
            raise ModelError("a PPO needs at least one action")
        self.features, self.actions = features, list(actions)
        self.gamma, self.gae, self.clip, self.epochs, self.horizon = gamma, gae, clip, epochs, horizon
        self.entropy = entropy
        nn = torch.nn
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self._networks = nn.ModuleDict({
                "body": nn.Sequential(nn.Linear(features, _WIDTH), nn.Tanh(), nn.Linear(_WIDTH, _WIDTH), nn.Tanh()),
                "actor": nn.Linear(_WIDTH, len(self.actions)), "critic": nn.Linear(_WIDTH, 1)})
            nn.init.orthogonal_(self._networks["actor"].weight, 0.01)
        self._optimizer = torch.optim.Adam(self._networks.parameters(), lr=rate, eps=1e-5)
        self._draws = torch.Generator().manual_seed(seed)
        self._seed = seed

    @classmethod
    def for_envs(cls, envs: Any, **options: Any) -> PPO:
        """For the observations and actions of a vector environment."""
        return cls(*spaces_of(envs), **options)

    def _forward(self, squashed: Any, masks: Any) -> tuple[Any, Any]:
        hidden = self._networks["body"](squashed)
        logits = self._networks["actor"](hidden).masked_fill(~masks, -1e8)
        return self._torch.distributions.Categorical(logits=logits), self._networks["critic"](hidden).squeeze(-1)

    def probabilities(self, observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """float64[rows, actions], 0 for illegal ones; observations float[rows, features], masks
        [rows, actions]. ModelError: a row of ``masks`` allows none."""
        torch = self._torch
        with torch.no_grad():
            policy, _ = self._forward(torch.from_numpy(squash(observations)), torch.from_numpy(need_legal(masks)))
        found = policy.probs.double().numpy()
        return found / found.sum(-1, keepdims=True)

    def liking(self, observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        return self.probabilities(observations, masks)

    def act(self, observations: np.ndarray, masks: np.ndarray) -> np.ndarray:
        """int64[rows]: legal actions, drawn by their probabilities."""
        chances = self._torch.from_numpy(self.probabilities(observations, masks))
        return self._torch.multinomial(chances, 1, generator=self._draws)[:, 0].numpy()

    def train(self, envs: Any, steps: int, *, on_mark: Callable[[str], Any] | None = None) -> Returns:
        """At least ``steps`` steps of a vector environment that resets in the same step. ``on_mark``
        is told how it goes, as text. ModelError: it resets in another step."""
        need_same_step(envs)
        torch = self._torch
        episodes = Returns(envs.num_envs, on_mark)
        observation, info = envs.reset(seed=self._seed)
        mask = info["action_mask"]
        while episodes.steps < steps:
            rows: list[tuple[Any, ...]] = []
            for _ in range(self.horizon):
                seen, legal = torch.from_numpy(squash(observation)), torch.from_numpy(need_legal(mask))
                with torch.no_grad():
                    policy, value = self._forward(seen, legal)
                action = torch.multinomial(policy.probs, 1, generator=self._draws)[:, 0]
                observation, reward, terminated, truncated, info = envs.step(action.numpy())
                mask = info["action_mask"]
                over = terminated | truncated  # an episode has ten steps: being cut is its end
                rows.append((seen, legal, action, policy.log_prob(action), value,
                             torch.from_numpy(reward.astype(np.float32)), torch.from_numpy(over.astype(np.float32)),
                             torch.from_numpy(~unmeasured(info, truncated))))
                episodes.add(reward, over)
            with torch.no_grad():
                _, last = self._forward(torch.from_numpy(squash(observation)), torch.from_numpy(np.asarray(mask, bool)))
            self._update([torch.stack(column) for column in zip(*rows)], last)
            episodes.mark()
        return episodes

    def _update(self, columns: list[Any], last_value: Any) -> None:
        """Columns [steps, environments, ...]."""
        torch = self._torch
        seen, masks, taken, logs, values, rewards, overs, known = columns
        if not known.any():
            return
        advantages, last, following = torch.zeros_like(rewards), torch.zeros_like(last_value), last_value
        for t in reversed(range(len(rewards))):
            going_on = 1 - overs[t]
            delta = rewards[t] + self.gamma * following * going_on - values[t]
            # An episode without a figure ends before that step, with the value of its state.
            advantages[t] = last = known[t] * (delta + self.gamma * self.gae * going_on * last)
            following = values[t]
        returns = (advantages + values)[known]
        seen, masks, taken, logs, advantages = (column[known] for column in (seen, masks, taken, logs, advantages))
        if len(taken) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        for _ in range(self.epochs):
            for part in torch.randperm(len(taken), generator=self._draws).split(_PART):
                policy, value = self._forward(seen[part], masks[part])
                ratio = (policy.log_prob(taken[part]) - logs[part]).exp()
                clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
                gain = torch.min(ratio * advantages[part], clipped * advantages[part]).mean()
                loss = -gain + 0.5 * (value - returns[part]).square().mean() - self.entropy * policy.entropy().mean()
                self._optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self._networks.parameters(), 0.5)
                self._optimizer.step()

    def policy(self) -> Policy:
        """Draws actions by their probabilities."""
        def act(observation: np.ndarray, mask: np.ndarray, rng: np.random.Generator) -> int:
            weights = self.probabilities(observation[None], np.asarray(mask)[None])[0]
            return int(rng.choice(len(weights), p=weights))
        return act

    def save(self, path: str | Path) -> None:
        """The networks, as one file (.npz); not the optimizer's state."""
        arrays = {name: value.numpy() for name, value in self._networks.state_dict().items()}
        write_model(path, "PPO", {"features": self.features, "actions": self.actions, "gamma": self.gamma}, arrays)

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> PPO:
        """Reads a file of save(), and runs none of it. BadModelFile."""
        facts, arrays = read_model(path, "PPO")
        with blaming_file(path):
            features, actions = int(facts["features"]), list(facts["actions"])
            check_agent(features, actions)
            options = {**options_of(facts, float, "gamma"), **options}
        agent = cls(features, actions, **options)
        with blaming_file(path):
            agent._networks.load_state_dict({name: agent._torch.from_numpy(value) for name, value in arrays.items()})
        return agent
