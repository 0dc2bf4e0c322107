"""StateEncoder: reads states of programs with two layers of GATv2. Importing this module imports torch; MissingPackage:
it is not installed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..programl import NODE_TYPES
from .errors import need
from .gatv2 import GATv2
from .pass_state import PassState
from .program_graph import MOST_POSITION, SELF_LOOP, ProgramGraph, join_graphs

torch: Any = need("torch", "models,torch")
nn = torch.nn

_TEXT_WIDTH, _EDGE_WIDTH, _GRAPH_WIDTH, _COUNT_WIDTH = 32, 64, 64, 64


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
        self.flow = nn.Embedding(SELF_LOOP + 1, _EDGE_WIDTH)
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
