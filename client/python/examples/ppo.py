#!/usr/bin/env python3
"""PPO in the manner of CleanRL (all of the algorithm in view; experiment.py beside this has the rest) on
LoopTune-v0, then a race with random search on matrix products that it has not seen.

    LOOPFLEET_BIN=build/release/bin python client/python/examples/ppo.py --out docs/examples/ppo
"""

import experiment
import torch
from experiment import Returns, environments, squash
from torch import nn


class Agent(nn.Module):
    def __init__(self, features, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh())
        self.actor = nn.Linear(128, actions)
        self.critic = nn.Linear(128, 1)
        nn.init.orthogonal_(self.actor.weight, 0.01)

    def forward(self, observations, masks):
        hidden = self.body(squash(observations))
        logits = self.actor(hidden).masked_fill(~masks, -1e8)
        return torch.distributions.Categorical(logits=logits), self.critic(hidden).squeeze(-1)


def train(client, benchmarks, total_steps, num_envs=16, horizon=40, epochs=4, gamma=1.0, gae=0.95, clip=0.2, rate=1e-3):
    envs = environments(client, benchmarks, num_envs)
    actions = len(envs.single_action_space.names)
    agent = Agent(envs.single_observation_space.shape[0], actions)
    optimizer = torch.optim.Adam(agent.parameters(), lr=rate, eps=1e-5)
    episodes = Returns(num_envs)
    observation, info = envs.reset(seed=1)
    observation, mask = torch.tensor(observation), torch.tensor(info["action_mask"], dtype=torch.bool)
    while episodes.steps < total_steps:
        seen, masks, taken, logs, rewards, values, overs = [], [], [], [], [], [], []
        for _ in range(horizon):
            with torch.no_grad():
                policy, value = agent(observation, mask)
            action = policy.sample()
            following, reward, terminated, truncated, info = envs.step(action.numpy())
            over = terminated | truncated  # an episode has ten steps: being cut is its end
            for row, each in ((seen, observation), (masks, mask), (taken, action), (logs, policy.log_prob(action)),
                              (values, value), (rewards, torch.tensor(reward, dtype=torch.float32)),
                              (overs, torch.tensor(over, dtype=torch.float32))):
                row.append(each)
            episodes.add(reward, over)
            observation, mask = torch.tensor(following), torch.tensor(info["action_mask"], dtype=torch.bool)
        seen, masks, taken, logs, rewards, values, overs = map(
            torch.stack, (seen, masks, taken, logs, rewards, values, overs))
        with torch.no_grad():
            following = agent(observation, mask)[1]
        advantages, last = torch.zeros_like(rewards), torch.zeros(num_envs)
        for t in reversed(range(horizon)):
            going_on = 1 - overs[t]
            delta = rewards[t] + gamma * following * going_on - values[t]
            advantages[t] = last = delta + gamma * gae * going_on * last
            following = values[t]
        returns = (advantages + values).flatten()
        advantages = advantages.flatten()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        seen, masks, taken, logs = seen.flatten(0, 1), masks.flatten(0, 1), taken.flatten(), logs.flatten()
        for _ in range(epochs):
            for part in torch.randperm(len(taken)).split(160):
                policy, value = agent(seen[part], masks[part])
                ratio = (policy.log_prob(taken[part]) - logs[part]).exp()
                gain = torch.min(ratio * advantages[part], ratio.clamp(1 - clip, 1 + clip) * advantages[part]).mean()
                loss = -gain + 0.5 * (value - returns[part]).square().mean() - 0.01 * policy.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        episodes.mark()
    envs.close()
    return agent, episodes


def policy_of(agent):
    def act(observation, mask, rng):
        with torch.no_grad():
            policy, _ = agent(torch.tensor(observation)[None], torch.tensor(mask, dtype=torch.bool)[None])
        weights = policy.probs[0].double().numpy()
        return int(rng.choice(len(weights), p=weights / weights.sum()))
    return act


def main():
    experiment.run("PPO", train, policy_of, __doc__)


if __name__ == "__main__":
    main()
