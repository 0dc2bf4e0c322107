"""ProGraML's graphs as numpy columns, for learners: the observation Programl of a job, decoded."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _core

NODE_TYPES = ("instruction", "variable", "constant")
FLOWS = ("control", "data", "call")
_COLUMNS = {"node_type": np.uint8, "node_text": "<u2", "node_function": "<u4", "node_block": "<u4",
            "edge_flow": np.uint8, "edge_position": "<u4", "edge_source": "<u4", "edge_target": "<u4"}


@dataclass(frozen=True)
class ProgramlColumns:
    """One number a node, and one an edge. ``node_text`` counts in ``texts``, node types in NODE_TYPES, edge flows in
    FLOWS."""

    texts: list[str]
    node_type: np.ndarray
    node_text: np.ndarray
    node_function: np.ndarray
    node_block: np.ndarray
    edge_flow: np.ndarray
    edge_position: np.ndarray
    edge_source: np.ndarray
    edge_target: np.ndarray


def programl_columns(value: str | bytes) -> ProgramlColumns:
    """From an outcome's ``observed["Programl"]``, or its bytes. ValueError: it is no graph."""
    columns: dict[str, Any] = _core.programl_columns(base64.b64decode(value) if isinstance(value, str) else value)
    return ProgramlColumns(columns["texts"], **{name: np.frombuffer(columns[name], kind)
                                                for name, kind in _COLUMNS.items()})
