"""GATv2, which is attention over the edges of a graph, and an encoder that reads states of programs with two layers of
it. Importing this module imports torch; MissingPackage: it is not installed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..programl import NODE_TYPES
from .errors import need
from .pass_state import PassState
from .program_graph import ITSELF, MOST_POSITION, ProgramGraph, join_graphs

torch: Any = need("torch", "models,torch")
nn = torch.nn

_TEXT_WIDTH, _EDGE_WIDTH, _GRAPH_WIDTH, _COUNT_WIDTH = 32, 64, 64, 64


class GATv2(nn.Module):
    """A layer: a node becomes the weighted mean of its edges' sources, plus a linear layer of the node itself. The
    weight of an edge depends on both of its nodes and on its kind, by a score after the non-linearity (Brody, Alon
    and Yahav, How Attentive are Graph Attention Networks?, 2022)."""

    def __init__(self, width: int, out: int, heads: int, edge_width: int):
        """``width`` and ``edge_width``: numbers of a node and of a kind of edge. Gives ``heads`` times ``out``
        numbers of each node."""
        super().__init__()
        self.heads, self.out = heads, out
        self.from_source = nn.Linear(width, heads * out)
        self.from_target = nn.Linear(width, heads * out)
        self.from_edge = nn.Linear(edge_width, heads * out, bias=False)
        self.score = nn.Parameter(torch.empty(heads, out))
        self.skip = nn.Linear(width, heads * out)
        nn.init.xavier_uniform_(self.score)

    def forward(self, nodes: Any, kinds: Any, kind: Any, source: Any, target: Any) -> Any:
        """float32[nodes, heads * out], of ``nodes`` float32[nodes, width], ``kinds`` float32[kinds, edge_width], and
        int64[edges] each: ``kind``, a row of ``kinds``; ``source`` and ``target``, rows of ``nodes``."""
        values = self.from_source(nodes)
        weights = self._weights(values, nodes, kinds, kind, source, target)
        taken = (values[source].view(-1, self.heads, self.out) * weights.unsqueeze(2)).flatten(1)
        return torch.zeros_like(values).index_add(0, target, taken) + self.skip(nodes)

    def weights(self, nodes: Any, kinds: Any, kind: Any, source: Any, target: Any) -> Any:
        """float32[edges, heads]: the shares that the sources have in the mean of their target; those of the edges into
        one node sum to 1. Arguments as forward()'s."""
        return self._weights(self.from_source(nodes), nodes, kinds, kind, source, target)

    def _weights(self, values: Any, nodes: Any, kinds: Any, kind: Any, source: Any, target: Any) -> Any:
        mixed = values[source] + self.from_target(nodes)[target] + self.from_edge(kinds)[kind]
        mixed = nn.functional.leaky_relu(mixed, 0.2).view(-1, self.heads, self.out)
        scores = (mixed * self.score).sum(-1)
        # A softmax over the edges into each node.
        places = target.unsqueeze(1).expand_as(scores)
        most = torch.full((len(nodes), self.heads), -1e9).scatter_reduce(0, places, scores.detach(), "amax")
        weights = torch.exp(scores - most[target])
        sums = torch.zeros(len(nodes), self.heads).index_add(0, target, weights)
        return weights / sums[target].clamp_min(1e-9)


class StateEncoder(nn.Module):
    """Reads a PassState: the mean over the nodes of its graph after two layers of GATv2, beside a layer over its
    counts. Texts, types, flows and positions of the graph are embedded, positions by Transformers' sines. A state
    without a graph has a vector that is learned in the place of that mean."""

    WIDTH = _GRAPH_WIDTH + _COUNT_WIDTH  # numbers of a state that has been read

    def __init__(self, texts: int, counts: int):
        """``texts``: the vocabulary's length; ``counts``: numbers in a state's counts."""
        super().__init__()
        self.text = nn.Embedding(texts, _TEXT_WIDTH)
        self.node_type = nn.Embedding(len(NODE_TYPES), _TEXT_WIDTH)
        self.flow = nn.Embedding(ITSELF + 1, _EDGE_WIDTH)
        self.register_buffer("positions", _sines(MOST_POSITION + 1, _EDGE_WIDTH), persistent=False)
        self.position = nn.Linear(_EDGE_WIDTH, _EDGE_WIDTH)
        self.first = GATv2(2 * _TEXT_WIDTH, 32, 2, _EDGE_WIDTH)
        self.second = GATv2(64, _GRAPH_WIDTH, 1, _EDGE_WIDTH)
        self.no_graph = nn.Parameter(torch.zeros(_GRAPH_WIDTH))
        self.counts = nn.Sequential(nn.Linear(counts, _COUNT_WIDTH), nn.Tanh())

    def forward(self, states: Sequence[PassState]) -> Any:
        """float32[states, WIDTH]"""
        whole = self.no_graph.expand(len(states), -1)
        rows = [row for row, state in enumerate(states) if state.graph is not None]
        if rows:
            whole = whole.index_put((torch.tensor(rows),), self.read([states[row].graph for row in rows]))
        return torch.cat((whole, self.counts(torch.from_numpy(np.stack([state.counts for state in states])))), 1)

    def read(self, graphs: Sequence[ProgramGraph]) -> Any:
        """float32[graphs, 64]: each as if it were alone, though all are computed at once."""
        whole, owner = join_graphs(graphs)
        kind, source, target, of_node = map(torch.from_numpy, (whole.kind, whole.source, whole.target, owner))
        nodes = torch.cat((self.text(torch.from_numpy(whole.text)), self.node_type(torch.from_numpy(whole.type))), 1)
        kinds = self.flow(torch.from_numpy(whole.flow)) + self.position(self.positions[whole.position])
        for layer in (self.first, self.second):
            nodes = nn.functional.elu(layer(nodes, kinds, kind, source, target))
        sums = torch.zeros(len(graphs), _GRAPH_WIDTH).index_add(0, of_node, nodes)
        return sums / torch.bincount(of_node, minlength=len(graphs)).unsqueeze(1)


def _sines(positions: int, width: int) -> Any:
    """float32[positions, width]: sines and cosines, as Transformers have them."""
    position = torch.arange(positions).unsqueeze(1)
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    return torch.stack((torch.sin(position * rate), torch.cos(position * rate)), 2).flatten(1)
