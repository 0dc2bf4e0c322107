"""A program's graph (ProGraML's) as numbers for a network, and several graphs as one. NumPy alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..programl import FLOWS, ProgramlColumns

SELF_LOOP = len(FLOWS)   # the flow from a node to itself, after those of FLOWS
MOST_POSITION = 5_120    # a later position of an edge counts as this one


@dataclass(frozen=True)
class ProgramGraph:
    """One number a node and one an edge. Few pairs of flow and position occur in a graph: each is a kind, and edges
    name their kind, so that a network embeds each kind once."""

    text: np.ndarray      # int[nodes]: Vocabulary's number
    type: np.ndarray      # int[nodes]: place in loopfleet.programl.NODE_TYPES
    flow: np.ndarray      # int[kinds]: place in FLOWS, or SELF_LOOP, which only the last kind has
    position: np.ndarray  # int[kinds]: 0 to MOST_POSITION
    kind: np.ndarray      # int[edges]
    source: np.ndarray    # int[edges]: a node
    target: np.ndarray    # int[edges]: a node


class Vocabulary:
    """Numbers of node texts: 1 for the first of ``texts``, and so on; 0 for any other text. ``len()`` counts all of
    them, 0 included."""

    def __init__(self, texts: Iterable[str]):
        """ValueError: a text is there twice."""
        self.texts = list(texts)
        self._number = {text: number for number, text in enumerate(self.texts, 1)}
        if len(self._number) < len(self.texts):
            raise ValueError("a vocabulary has each text once")

    @classmethod
    def of(cls, graphs: Iterable[ProgramlColumns]) -> Vocabulary:
        """The texts that at least two of the graphs have, sorted; of one graph alone, all of its texts."""
        seen: Counter[str] = Counter()
        given = 0
        for given, graph in enumerate(graphs, 1):
            seen.update(graph.texts)
        return cls(sorted(text for text, count in seen.items() if count >= min(2, given)))

    def __len__(self) -> int:
        return len(self.texts) + 1

    def encode(self, graph: ProgramlColumns) -> ProgramGraph:
        """The graph with this vocabulary's numbers; columns are int32. The last kind is from a node to itself: no edge
        has it yet, join_graphs() makes those."""
        number_of = np.array([self._number.get(text, 0) for text in graph.texts], np.int64)
        pairs = graph.edge_flow.astype(np.int64) << 32 | np.minimum(graph.edge_position, MOST_POSITION)
        pairs, kind = np.unique(np.append(pairs, SELF_LOOP << 32), return_inverse=True)
        return ProgramGraph(*(np.ascontiguousarray(column, np.int32) for column in (
            number_of[graph.node_text], graph.node_type, pairs >> 32, pairs & 0xffffffff, kind[:-1],
            graph.edge_source, graph.edge_target)))


def join_graphs(graphs: Sequence[ProgramGraph]) -> tuple[ProgramGraph, np.ndarray]:
    """(several graphs as one without edges between them, the place in ``graphs`` of each node's: int64[nodes]).
    Columns are int64. After the edges of all graphs, each node has one to itself. ValueError: there is no graph."""
    sizes = np.array([len(graph.text) for graph in graphs], np.int64)
    kinds = np.array([len(graph.flow) for graph in graphs], np.int64)
    first_node, first_kind = np.cumsum(sizes) - sizes, np.cumsum(kinds) - kinds
    owner = np.repeat(np.arange(len(graphs)), sizes)
    itself = np.arange(len(owner))
    columns = [np.concatenate([getattr(graph, name) for graph in graphs], dtype=np.int64)
               for name in ("text", "type", "flow", "position")]
    kind = np.concatenate([*(graph.kind + first for graph, first in zip(graphs, first_kind)),
                           (first_kind + kinds - 1)[owner]], dtype=np.int64)
    ends = [np.concatenate([*(getattr(graph, name) + first for graph, first in zip(graphs, first_node)), itself],
                           dtype=np.int64) for name in ("source", "target")]
    return ProgramGraph(*columns, kind, *ends), owner
