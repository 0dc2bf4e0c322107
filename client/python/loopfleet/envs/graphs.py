"""Graph observations as networkx.MultiDiGraph."""

from __future__ import annotations

from typing import Any


def to_networkx(node_link: dict[str, Any]) -> Any:
    """Converts the node-link dict of ``_core``."""
    import networkx as nx

    graph = nx.MultiDiGraph()
    for node in node_link["nodes"]:
        attributes = dict(node)
        graph.add_node(attributes.pop("id"), **attributes)
    for edge in node_link["edges"]:
        attributes = dict(edge)
        source, target, key = (attributes.pop(name) for name in ("source", "target", "key"))
        graph.add_edge(source, target, key=key, **attributes)
    return graph
