"""GATv2: attention over the edges of a graph. Importing this module imports torch; MissingPackage: it is not
installed."""

from __future__ import annotations

from typing import Any

from .errors import need

torch: Any = need("torch", "models,torch")
nn = torch.nn


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
