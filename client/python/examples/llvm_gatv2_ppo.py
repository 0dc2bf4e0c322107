#!/usr/bin/env python3
"""An agent that orders LLVM passes: PPO over ProGraML's graph of the program, read by GATv2. Trained on
programs of Csmith, then judged on programs of Debian that it has not seen, beside random search and a
greedy search at equal evaluations. An evaluation is the state after one pass.

    deploy/llvm/build_debian.py programs
    LOOPFLEET_BIN=build/release/bin python client/python/examples/llvm_gatv2_ppo.py \\
        --llvm-programs programs --out docs/examples/llvm_gatv2_ppo

Episodes run side by side over the fleet, and the learner takes those that have ended: a few of its
updates lie between what an episode was begun with and what it teaches (the lag, which is recorded).
A graph of more than MOST_INSTRUCTIONS instructions is left out, and the policy sees the counts alone;
a tenth of the training episodes do without graphs, too. The results say for which programs that was so.
"""

import argparse
import collections
import json
import math
import os
import queue
import time
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

import loopfleet
from loopfleet import _core
from loopfleet.observed_blob import is_blob
from loopfleet.programl import programl_columns

FLAGS = [flag for flag, _ in _core.pass_actions("Passes19")]
MOST_INSTRUCTIONS = 6_000
MOST_POSITION = 5_120
ITSELF = 3  # after the three flows: from a node to itself
TEXT_WIDTH, EDGE_WIDTH, GRAPH_WIDTH, COUNT_WIDTH = 32, 64, 64, 64
COUNTS = 70 + 3 + len(FLAGS)  # InstCount as shares, the sizes and the place in the episode, the passes so far


# ---- the graph


class Vocabulary:
    """Numbers for node texts that occur at least twice in the first programs; 0 is any other text."""

    def __init__(self, graphs):
        seen = collections.Counter(text for graph in graphs for text in graph.texts)
        self.number = {text: place for place, text in enumerate(sorted(t for t, n in seen.items() if n > 1), 1)}

    def __len__(self):
        return len(self.number) + 1

    def encode(self, graph):
        of_text = np.array([self.number.get(text, 0) for text in graph.texts], np.int64)
        # Few pairs of flow and position occur: each is embedded once, and edges name it.
        pairs = graph.edge_flow.astype(np.int64) << 32 | np.minimum(graph.edge_position, MOST_POSITION)
        pairs, kind = np.unique(np.append(pairs, ITSELF << 32), return_inverse=True)
        return Graph(*(torch.from_numpy(np.ascontiguousarray(column, dtype=np.int32)) for column in (
            of_text[graph.node_text], graph.node_type, pairs >> 32, pairs & 0xffffffff, kind[:-1],
            graph.edge_source, graph.edge_target)))


@dataclass
class Graph:
    text: torch.Tensor  # of each node
    type: torch.Tensor
    flow: torch.Tensor  # of each kind of edge; the last is from a node to itself
    position: torch.Tensor
    kind: torch.Tensor  # of each edge
    source: torch.Tensor
    target: torch.Tensor


def joined(graphs):
    """Several graphs as one without edges between them, and the number of each node's graph."""
    sizes = torch.tensor([len(graph.text) for graph in graphs])
    offsets = torch.cumsum(sizes, 0) - sizes
    columns = [torch.cat([getattr(graph, name) for graph in graphs]).long()
               for name in ("text", "type", "flow", "position")]
    kinds = torch.tensor([len(graph.flow) for graph in graphs])
    first_kind = torch.cumsum(kinds, 0) - kinds
    owner = torch.repeat_interleave(torch.arange(len(graphs)), sizes)
    # Every node has an edge to itself, of its graph's last kind.
    itself = torch.arange(len(owner))
    kind = torch.cat([graph.kind.long() + first for graph, first in zip(graphs, first_kind)]
                     + [(first_kind + kinds - 1)[owner]])
    ends = [torch.cat([getattr(graph, name).long() + offset for graph, offset in zip(graphs, offsets)] + [itself])
            for name in ("source", "target")]
    return Graph(*columns, kind, *ends), owner


def positional_table(width):
    """Transformers' sines and cosines of 0 to MOST_POSITION."""
    position = torch.arange(MOST_POSITION + 1).unsqueeze(1)
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    return torch.stack((torch.sin(position * rate), torch.cos(position * rate)), 2).flatten(1)


class GATv2(nn.Module):
    """Brody et al.'s attention over edges, with edge features: a node takes a weighted mean of its sources, the
    weight of each from both nodes and the edge, by a layer after the non-linearity. Residual."""

    def __init__(self, width, out, heads, edge_width):
        super().__init__()
        self.heads, self.out = heads, out
        self.from_source = nn.Linear(width, heads * out)
        self.from_target = nn.Linear(width, heads * out)
        self.from_edge = nn.Linear(edge_width, heads * out, bias=False)
        self.score = nn.Parameter(torch.empty(heads, out))
        self.skip = nn.Linear(width, heads * out)
        nn.init.xavier_uniform_(self.score)

    def forward(self, nodes, edges, kind, source, target):
        values = self.from_source(nodes)
        mixed = values[source] + self.from_target(nodes)[target] + self.from_edge(edges)[kind]
        mixed = nn.functional.leaky_relu(mixed, 0.2).view(-1, self.heads, self.out)
        scores = (mixed * self.score).sum(-1)  # of each edge and head
        # A softmax over the edges into each node.
        places = target.unsqueeze(1).expand_as(scores)
        most = torch.full((len(nodes), self.heads), -1e9).scatter_reduce(0, places, scores.detach(), "amax")
        weights = torch.exp(scores - most[target])
        sums = torch.zeros(len(nodes), self.heads).index_add(0, target, weights)
        weights = weights / sums[target].clamp_min(1e-9)
        taken = (values[source].view(-1, self.heads, self.out) * weights.unsqueeze(2)).flatten(1)
        return torch.zeros_like(values).index_add(0, target, taken) + self.skip(nodes)


class Encoder(nn.Module):
    """A state as a vector: the mean over the nodes of its graph after two layers of GATv2, beside its counts."""

    WIDTH = GRAPH_WIDTH + COUNT_WIDTH

    def __init__(self, texts):
        super().__init__()
        self.text = nn.Embedding(texts, TEXT_WIDTH)
        self.kind = nn.Embedding(3, TEXT_WIDTH)
        self.flow = nn.Embedding(ITSELF + 1, EDGE_WIDTH)
        self.register_buffer("positions", positional_table(EDGE_WIDTH), persistent=False)
        self.position = nn.Linear(EDGE_WIDTH, EDGE_WIDTH)
        self.first = GATv2(2 * TEXT_WIDTH, 32, 2, EDGE_WIDTH)
        self.second = GATv2(64, GRAPH_WIDTH, 1, EDGE_WIDTH)
        self.no_graph = nn.Parameter(torch.zeros(GRAPH_WIDTH))
        self.counts = nn.Sequential(nn.Linear(COUNTS, COUNT_WIDTH), nn.Tanh())

    def forward(self, states):
        graphs = [state.graph for state in states if state.graph is not None]
        whole = self.no_graph.expand(len(states), -1)
        if graphs:
            rows = torch.tensor([place for place, state in enumerate(states) if state.graph is not None])
            whole = whole.index_put((rows,), self.read(graphs))
        return torch.cat((whole, self.counts(torch.stack([state.counts for state in states]))), 1)

    def read(self, graphs):
        graph, owner = joined(graphs)
        nodes = torch.cat((self.text(graph.text), self.kind(graph.type)), 1)
        edges = self.flow(graph.flow) + self.position(self.positions[graph.position])
        for layer in (self.first, self.second):
            nodes = nn.functional.elu(layer(nodes, edges, graph.kind, graph.source, graph.target))
        sums = torch.zeros(len(graphs), GRAPH_WIDTH).index_add(0, owner, nodes)
        return sums / torch.bincount(owner, minlength=len(graphs)).unsqueeze(1)


class Agent(nn.Module):
    """Policy and value, over one encoder or over one each."""

    def __init__(self, texts, shared):
        super().__init__()
        self.encoder = Encoder(texts)
        self.critic_encoder = self.encoder if shared else Encoder(texts)
        self.actor = nn.Linear(Encoder.WIDTH, len(FLAGS))
        self.critic = nn.Linear(Encoder.WIDTH, 1)
        nn.init.orthogonal_(self.actor.weight, 0.01)

    def forward(self, states):
        seen = self.encoder(states)
        valued = seen if self.critic_encoder is self.encoder else self.critic_encoder(states)
        return torch.distributions.Categorical(logits=self.actor(seen)), self.critic(valued).squeeze(1)


# ---- episodes over the fleet


@dataclass
class State:
    counts: torch.Tensor
    graph: Graph | None


@dataclass
class Episode:
    """The passes so far on one program. Between its steps it waits for the fleet; nothing else holds its state."""

    uri: str
    with_graph: bool
    begun_with: int = 0  # the number of updates of the policy
    passes: list = field(default_factory=list)  # numbers of FLAGS
    sizes: list = field(default_factory=list)  # instructions, from the start on
    states: list = field(default_factory=list)
    logs: list = field(default_factory=list)
    values: list = field(default_factory=list)
    saw_graphs: int = 0
    broke: bool = False

    def rewards(self):
        gained = [math.log(max(a, 1) / max(b, 1)) for a, b in zip(self.sizes, self.sizes[1:])]
        return gained + [0.0] * (len(self.passes) - len(gained))  # 0 for a pass that broke

    def wants_graph(self):
        return self.with_graph and (not self.sizes or self.sizes[-1] <= MOST_INSTRUCTIONS)

    def job(self):
        observe = ["InstCount", "Programl"] if self.wants_graph() else ["InstCount"]
        return {"benchmark": self.uri, "passes": [FLAGS[action] for action in self.passes], "observe": observe}


class Rollouts:
    """Episodes side by side: `step` takes what the fleet has answered, lets the policy choose for all of it at
    once, and sends the next jobs."""

    def __init__(self, client, vocabulary, steps):
        self.client, self.vocabulary, self.steps = client, vocabulary, steps
        self.answers = queue.SimpleQueue()
        self.under_way = 0

    def begin(self, episode):
        self.send([episode])

    def send(self, episodes):
        self.under_way += len(episodes)
        for episode, future in zip(episodes, self.client.submit_jobs([episode.job() for episode in episodes])):
            future.add_done_callback(lambda done, episode=episode: self.answers.put((episode, done)))

    def step(self, agent, most=64):
        """The episodes that have ended."""
        ready, ended = [self.answers.get()], []
        while len(ready) < most and not self.answers.empty():
            ready.append(self.answers.get())
        self.under_way -= len(ready)
        going = []
        for episode, done in ready:
            outcome = done.result()
            if outcome.ok:
                self.take(episode, outcome.observed)
                (going if len(episode.passes) < self.steps else ended).append(episode)
            elif outcome.status in ("COMPILE_ERROR", "COMPILE_TIMEOUT", "COMPILE_OOM") and episode.passes:
                episode.broke = True
                ended.append(episode)
            else:
                raise RuntimeError(f"{episode.uri}: {outcome.status}: {outcome.message}")
        if going:
            with torch.no_grad():
                policy, values = agent([episode.states[-1] for episode in going])
                actions = policy.sample()
                logs = policy.log_prob(actions)
            for episode, action, log, value in zip(going, actions, logs, values):
                episode.passes.append(int(action))
                episode.logs.append(float(log))
                episode.values.append(float(value))
            self.send(going)
        return ended

    def take(self, episode, observed):
        count = np.asarray(observed["InstCount"], np.float32)
        episode.sizes.append(int(count[0]))
        passes = np.bincount(episode.passes, minlength=len(FLAGS)) / 4
        facts = [math.log(max(count[0], 1) / max(episode.sizes[0], 1)), math.log(max(count[0], 1)) / 10,
                 len(episode.passes) / self.steps]
        counts = torch.tensor(np.concatenate((count / max(count[0], 1), facts, passes)), dtype=torch.float32)
        graph = None
        if is_blob(observed.get("Programl")):  # too large for an outcome, and for a step of this agent
            episode.with_graph = False
        elif "Programl" in observed:
            graph = self.vocabulary.encode(programl_columns(observed["Programl"]))
            episode.saw_graphs += 1
        episode.states.append(State(counts, graph))


# ---- learning


def advantages_of(episode, gamma=1.0, decay=0.95):
    rewards, values = episode.rewards(), episode.values + [0.0]  # an episode ends after a fixed number of steps
    advantages, last = [0.0] * len(rewards), 0.0
    for t in reversed(range(len(rewards))):
        last = rewards[t] + gamma * values[t + 1] - values[t] + gamma * decay * last
        advantages[t] = last
    return advantages


def update(agent, optimizer, episodes, epochs, clip=0.2, minibatch=64, entropy_weight=0.01):
    states = [state for episode in episodes for state in episode.states[:len(episode.passes)]]
    actions = torch.tensor([action for episode in episodes for action in episode.passes])
    logs = torch.tensor([log for episode in episodes for log in episode.logs])
    advantages = torch.tensor([each for episode in episodes for each in advantages_of(episode)])
    returns = advantages + torch.tensor([value for episode in episodes for value in episode.values])
    entropies = []
    for _ in range(epochs):
        for rows in torch.randperm(len(states)).split(minibatch):
            policy, values = agent([states[row] for row in rows])
            gain = advantages[rows]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8) if len(rows) > 1 else gain
            ratio = torch.exp(policy.log_prob(actions[rows]) - logs[rows])
            of_policy = -torch.min(ratio * gain, ratio.clamp(1 - clip, 1 + clip) * gain).mean()
            of_value = nn.functional.mse_loss(values, returns[rows])
            entropy = policy.entropy().mean()
            entropies.append(float(entropy.detach()))
            optimizer.zero_grad()
            (of_policy + 0.5 * of_value - entropy_weight * entropy).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
    return float(np.mean(entropies))


def sizes_of(client, uris, passes=(), observe="IrInstructionCount"):
    """The number of each program that can be had."""
    jobs = [{"benchmark": uri, "passes": list(passes), "observe": [observe]} for uri in uris]
    outcomes = client.evaluate_many(jobs, timeout=600).outcomes
    return {uri: int(outcome.observed[observe]) for uri, outcome in zip(uris, outcomes) if outcome.ok}


def processor_seconds(cluster):
    """Of this process and of the cluster, with all that they started."""
    parents, ticks = {}, {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended; its parent has its ticks
            parents[int(name)], ticks[int(name)] = int(fields[1]), sum(map(int, fields[11:15]))

    def is_counted(pid):
        while pid in parents and pid not in (os.getpid(), cluster.pid):
            pid = parents[pid]
        return pid in (os.getpid(), cluster.pid)

    return sum(ticks[pid] for pid in parents if is_counted(pid)) / os.sysconf("SC_CLK_TCK")


def training_programs(client, seeds, most_instructions):
    sizes = sizes_of(client, [f"generator://csmith-v0/{seed}" for seed in range(1_000, 1_000 + seeds)])
    return [uri for uri, size in sizes.items() if 200 <= size <= most_instructions]


def train(cluster, client, programs, arguments):
    random = np.random.default_rng(arguments.seed)
    first = client.evaluate_many([{"benchmark": uri, "observe": ["Programl"]} for uri in programs], timeout=600)
    vocabulary = Vocabulary([programl_columns(outcome.observed["Programl"]) for outcome in first.outcomes])
    best = sizes_of(client, programs, observe="IrInstructionCountOz")
    print(f"{len(programs)} programs to train on, {len(vocabulary)} texts", flush=True)
    agent = Agent(len(vocabulary), arguments.encoder == "shared")
    optimizer = torch.optim.Adam(agent.parameters(), lr=arguments.rate, eps=1e-5)
    rollouts = Rollouts(client, vocabulary, arguments.episode)
    curve, ready, updates, steps = [], [], 0, 0
    since, processor_since = time.monotonic(), processor_seconds(cluster)

    def begin():
        rollouts.begin(Episode(programs[int(random.integers(len(programs)))], random.random() < 0.9, updates))

    for _ in range(arguments.width):
        begin()
    while steps < arguments.steps and time.monotonic() - since < arguments.seconds:
        for episode in rollouts.step(agent):
            begin()
            if updates - episode.begun_with <= 4:  # else the policy has gone on too far
                ready.append(episode)
        if sum(len(episode.passes) for episode in ready) < arguments.batch:
            continue
        entropy = update(agent, optimizer, ready, arguments.epochs)
        updates += 1
        steps += sum(len(episode.passes) for episode in ready)
        curve.append({"updates": updates, "steps": steps, "seconds": round(time.monotonic() - since, 1),
                      "processor_seconds": round(processor_seconds(cluster) - processor_since, 1),
                      "oz_ratio": geometric_mean(best[each.uri] / min(each.sizes) for each in ready),
                      "return": float(np.mean([sum(each.rewards()) for each in ready])),
                      "lag": float(np.mean([updates - 1 - each.begun_with for each in ready])),
                      "broke": sum(each.broke for each in ready), "entropy": entropy})
        print(json.dumps(curve[-1]), flush=True)
        save(arguments.out, agent, vocabulary, curve, programs)
        ready = []
    while rollouts.under_way:  # their answers are not wanted
        rollouts.answers.get()
        rollouts.under_way -= 1
    return agent, vocabulary, curve


def save(out, agent, vocabulary, curve, programs):
    torch.save({"agent": agent.state_dict(), "shared": agent.critic_encoder is agent.encoder,
                "texts": vocabulary.number, "curve": curve, "programs": programs}, f"{out}.pt.new")
    os.replace(f"{out}.pt.new", f"{out}.pt")


def load(out):
    saved = torch.load(f"{out}.pt")
    vocabulary = Vocabulary([])
    vocabulary.number = saved["texts"]
    agent = Agent(len(vocabulary), saved["shared"])
    agent.load_state_dict(saved["agent"])
    return agent, vocabulary, saved["curve"], saved["programs"]


# ---- judging


def geometric_mean(values):
    return float(np.exp(np.mean(np.log(list(values)))))


def with_policy(client, agent, vocabulary, uris, evaluations, steps):
    """The fewest instructions of each program within so many states, and for how many of them a graph was seen."""
    rollouts = Rollouts(client, vocabulary, steps)
    fewest, graphs = dict.fromkeys(uris, math.inf), dict.fromkeys(uris, 0)
    for uri in uris:
        for _ in range(evaluations // steps):
            rollouts.begin(Episode(uri, True))
    while rollouts.under_way:
        for episode in rollouts.step(agent, most=16):
            fewest[episode.uri] = min(fewest[episode.uri], *episode.sizes)
            graphs[episode.uri] += episode.saw_graphs
    return fewest, graphs


def at_random(client, uris, evaluations, steps, seed):
    random = np.random.default_rng(seed)
    fewest = dict.fromkeys(uris, math.inf)
    for uri in uris:
        for _ in range(evaluations // steps):
            walk = [FLAGS[action] for action in random.integers(0, len(FLAGS), steps)]
            jobs = [{"benchmark": uri, "passes": walk[:length], "observe": ["IrInstructionCount"]}
                    for length in range(steps + 1)]
            for outcome in client.evaluate_many(jobs, timeout=600).outcomes:
                if outcome.ok:
                    fewest[uri] = min(fewest[uri], outcome.observed["IrInstructionCount"])
    return fewest


def greedily(client, uris, evaluations):
    """Takes the pass that leaves the fewest instructions, as often as all passes can be tried."""
    fewest = sizes_of(client, uris)
    for uri in uris:
        walk, left = [], evaluations
        while left > 0:
            tried = FLAGS[:left]
            left -= len(tried)
            jobs = [{"benchmark": uri, "passes": [*walk, flag], "observe": ["IrInstructionCount"]} for flag in tried]
            found = [(outcome.observed["IrInstructionCount"], flag)
                     for flag, outcome in zip(tried, client.evaluate_many(jobs, timeout=600).outcomes) if outcome.ok]
            if not found or min(found)[0] >= fewest[uri]:
                break
            fewest[uri] = min(found)[0]
            walk.append(min(found)[1])
    return fewest


def judge(client, agent, vocabulary, arguments):
    start, oz, o3 = ({**sizes_of(client, arguments.test, observe=observe)} for observe in
                     ("IrInstructionCount", "IrInstructionCountOz", "IrInstructionCountO3"))
    uris = [uri for uri in arguments.test if uri in oz]
    if missing := set(arguments.test) - set(uris):
        raise RuntimeError(f"these programs cannot be had: {', '.join(sorted(missing))}")
    rows = {"-O3": [o3], "no pass": [start], "greedy": [greedily(client, uris, arguments.evaluations)]}
    print("greedy done", flush=True)
    rows["random search"] = [at_random(client, uris, arguments.evaluations, arguments.episode, seed)
                             for seed in range(arguments.seeds)]
    print("random search done", flush=True)
    rows["agent"], graphs = [], {}
    for seed in range(arguments.seeds):
        torch.manual_seed(seed)
        fewest, graphs = with_policy(client, agent, vocabulary, uris, arguments.evaluations, arguments.episode)
        rows["agent"].append(fewest)
        print(f"agent done, seed {seed}", flush=True)
    return {"oz_ratio": {name: [geometric_mean(oz[uri] / of[uri] for uri in uris) for of in seeds]
                         for name, seeds in rows.items()},
            "instructions": {uri: {"Oz": oz[uri], **{name: [of[uri] for of in seeds] for name, seeds in rows.items()}}
                             for uri in uris},
            "states_with_graph": {uri: graphs[uri] for uri in uris}}


def draw(curve, results, out):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4))
    left.plot([row["steps"] for row in curve], [row["oz_ratio"] for row in curve])
    left.set(title="training, programs of Csmith", xlabel="steps", ylabel="-Oz's instructions / the agent's")
    names = list(results["oz_ratio"])
    right.bar(names, [float(np.mean(results["oz_ratio"][name])) for name in names])
    right.axhline(1.0, color="black", linewidth=0.8)
    right.tick_params(axis="x", rotation=30)
    right.set(title="programs of Debian", ylabel="geometric mean")
    figure.tight_layout()
    figure.savefig(f"{out}.png", dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llvm-programs", help="the folder that deploy/llvm/build_debian.py made")
    parser.add_argument("--test", nargs="+", metavar="URI", help="programs to judge on (default: debian-v0, the "
                        "smaller ones)")
    parser.add_argument("--encoder", choices=("shared", "unshared"), default="shared")
    parser.add_argument("--steps", type=int, default=100_000, help="of training, at most")
    parser.add_argument("--seconds", type=float, default=1_200, help="of training, at most")
    parser.add_argument("--train-seeds", type=int, default=250, help="programs to choose from")
    parser.add_argument("--most-instructions", type=int, default=800, help="of a program to train on")
    parser.add_argument("--episode", type=int, default=20, help="passes")
    parser.add_argument("--width", type=int, default=24, help="episodes side by side")
    parser.add_argument("--batch", type=int, default=600, help="steps of an update")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--evaluations", type=int, default=120, help="states of each program in a comparison")
    parser.add_argument("--seeds", type=int, default=3, help="of random search and of the policy's samples")
    parser.add_argument("--seed", type=int, default=1, help="of training")
    parser.add_argument("--judge", action="store_true", help="do not train: judge the agent in OUT.pt")
    parser.add_argument("--out", required=True, help="writes OUT.pt after each update, OUT.json and OUT.png in the end")
    arguments = parser.parse_args()
    arguments.test = arguments.test or [f"benchmark://debian-v0/{name}" for name in (
        "bzip2", "ed", "expat", "gif", "gsm", "gzip", "lz4", "mad", "nettle", "speex", "yaml", "zlib")]
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)  # the other cores are the fleet's
    cluster = loopfleet.LocalCluster(llvm_programs=arguments.llvm_programs, leave_timing_cores=False)
    # A machine that does other work may keep the coordinator waiting; a training should outlast that.
    with cluster, cluster.client(silence_limit=600.0) as client:
        if arguments.judge:
            agent, vocabulary, curve, programs = load(arguments.out)
        else:
            programs = training_programs(client, arguments.train_seeds, arguments.most_instructions)
            agent, vocabulary, curve = train(cluster, client, programs, arguments)
        results = judge(client, agent, vocabulary, arguments)
    facts = {"training": {"programs": len(programs), "encoder": arguments.encoder, "curve": curve},
             "evaluations": arguments.evaluations, "episode": arguments.episode, **results}
    with open(f"{arguments.out}.json", "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1)
    draw(curve, results, arguments.out)
    for name, ratios in results["oz_ratio"].items():
        print(f"{name:14} {', '.join(f'{ratio:.3f}' for ratio in ratios)}")


if __name__ == "__main__":
    main()
