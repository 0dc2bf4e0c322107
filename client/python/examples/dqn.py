#!/usr/bin/env python3
"""A small double DQN (temporal differences, replay, masks) on LoopTune-v0, then a race with random search on
matrix products that it has not seen.

    LOOPFLEET_BIN=build/release/bin python client/python/examples/dqn.py --out docs/examples/dqn
"""

import experiment
import numpy as np
import torch
from experiment import Returns, environments, squash
from torch import nn


def network(features, actions):
    return nn.Sequential(nn.Linear(features, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, actions))


class Replay:
    """The last ``size`` transitions."""

    def __init__(self, size, features, actions):
        self.observation = torch.zeros(size, features)
        self.following = torch.zeros(size, features)
        self.mask = torch.zeros(size, actions, dtype=torch.bool)  # of what may follow
        self.action = torch.zeros(size, dtype=torch.long)
        self.reward = torch.zeros(size)
        self.over = torch.zeros(size)
        self.count = 0

    def add(self, *columns):
        places = torch.arange(self.count, self.count + len(columns[0])) % len(self.action)
        for column, values in zip((self.observation, self.action, self.reward, self.following, self.mask, self.over),
                                  columns):
            column[places] = torch.as_tensor(values).to(column.dtype)
        self.count += len(columns[0])

    def sample(self, many):
        places = torch.randint(min(self.count, len(self.action)), (many,))
        return (self.observation[places], self.action[places], self.reward[places], self.following[places],
                self.mask[places], self.over[places])


def best(values, masks):
    return values.masked_fill(~masks, -torch.inf).argmax(-1)


def train(client, benchmarks, total_steps, num_envs=16, rate=5e-4, gamma=1.0, batch=128):
    envs = environments(client, benchmarks, num_envs)
    features, actions = envs.single_observation_space.shape[0], len(envs.single_action_space.names)
    online, target = network(features, actions), network(features, actions)
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=rate)
    replay, rng = Replay(20_000, features, actions), np.random.default_rng(1)
    episodes, updates = Returns(num_envs), 0
    observation, info = envs.reset(seed=1)
    mask = info["action_mask"]
    while episodes.steps < total_steps:
        chance = max(0.05, 1 - episodes.steps / total_steps / 0.6)  # of a random action
        with torch.no_grad():
            action = best(online(squash(torch.tensor(observation))), torch.tensor(mask, dtype=torch.bool)).numpy()
        random = np.argmax(rng.random(mask.shape) * mask, axis=1)
        action = np.where(rng.random(num_envs) < chance, random, action)
        following, reward, terminated, truncated, info = envs.step(action)
        over = terminated | truncated
        # What an ended episode came to plays no part: nothing follows it.
        replay.add(squash(torch.tensor(observation)), action, reward, squash(torch.tensor(following)),
                   info["action_mask"], over)
        observation, mask = following, info["action_mask"]
        episodes.add(reward, over)
        if replay.count < 1000:
            continue
        for _ in range(2):
            seen, taken, earned, then, legal, ended = replay.sample(batch)
            with torch.no_grad():
                chosen = best(online(then), legal)
                goal = earned + gamma * (1 - ended) * target(then).gather(1, chosen[:, None])[:, 0]
            loss = nn.functional.smooth_l1_loss(online(seen).gather(1, taken[:, None])[:, 0], goal)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(online.parameters(), 10.0)
            optimizer.step()
            updates += 1
            if updates % 250 == 0:
                target.load_state_dict(online.state_dict())
        if episodes.steps % (40 * num_envs) == 0:
            episodes.mark(f", {chance:.0%} at random")
    envs.close()
    return online, episodes


def policy_of(online, temperature=0.05, chance=0.05):
    """Softly greedy: the same walk again would find nothing new."""
    def act(observation, mask, rng):
        legal = np.flatnonzero(mask)
        if rng.random() < chance:
            return int(rng.choice(legal))
        with torch.no_grad():
            values = online(squash(torch.tensor(observation)[None]))[0].double().numpy()[legal]
        weights = np.exp((values - values.max()) / temperature)
        return int(rng.choice(legal, p=weights / weights.sum()))
    return act


def main():
    experiment.run("DQN", train, policy_of, __doc__)


if __name__ == "__main__":
    main()
