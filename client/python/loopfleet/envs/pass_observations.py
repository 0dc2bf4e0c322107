"""Observations of LLVM passes by name: what a job observes for them, their spaces, and their values."""

from __future__ import annotations

import json
import string
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np

from .. import _core
from ..programl import FLOWS
from .spaces import BytesSpace, GraphSpace, checked_name

CONTROL_POSITIONS = ("index", "zero")

# Of each array, the keys of its numbers in its dictionary.
_KEYS = {"InstCount": [f"{name}Count" for name in _core.pass_number_names("InstCount")],
         "InstCountNorm": [f"{name}Density" for name in _core.pass_number_names("InstCount")[1:]],
         "Autophase": _core.pass_number_names("Autophase")}


@dataclass(frozen=True)
class PassObservation:
    """An observation of the state after some passes. The client makes it of ``base``, which a job observes."""

    name: str
    base: str
    kind: str          # of the base: "int64", "int64[]", "float32[]", "text" or "bytes"
    is_baseline: bool  # the same after any passes

    @property
    def space(self) -> gym.Space:
        if self.name == "Programl":
            return GraphSpace()
        if self.name == "BitcodeFile" or self.kind == "text":
            return gym.spaces.Text(_core.MAX_BLOB_BYTES, charset=string.printable)
        if self.kind == "bytes":
            return BytesSpace()
        if self.name != self.base:
            return gym.spaces.Dict({key: self._numbers(()) for key in _KEYS[self.base]})
        return self._numbers(() if self.kind == "int64" else (len(_KEYS[self.base]),))

    def decoded(self, value: Any, control_positions: str) -> Any:
        """The base's value in full as the space says; for BitcodeFile, what the file has to hold."""
        if self.name == "Programl":
            import networkx
            return networkx.node_link_graph(_node_link(_core.programl_json(value), control_positions), edges="links")
        if self.name.startswith("ProgramlJson") and control_positions == "zero":
            return json.dumps(_node_link(value, control_positions), ensure_ascii=False, separators=(",", ":"))
        if self.kind in ("text", "bytes"):
            return value
        numbers = np.asarray(value, np.float32 if self.kind == "float32[]" else np.int64)
        return numbers if self.name == self.base else dict(zip(_KEYS[self.base], map(np.asarray, numbers)))

    def _numbers(self, shape: tuple[int, ...]) -> gym.spaces.Box:
        if self.kind == "float32[]":
            return gym.spaces.Box(0, np.inf, shape, np.float32)
        return gym.spaces.Box(0, np.iinfo(np.int64).max, shape, np.int64)


def _node_link(graph: str, control_positions: str) -> dict[str, Any]:
    """The graph of its JSON; with "zero", control edges have position 0, as in CompilerGym, not the successor's."""
    node_link = json.loads(graph)
    if control_positions == "zero":
        for link in node_link["links"]:
            if FLOWS[link["flow"]] == "control":
                link["position"] = 0
    return node_link


OBSERVATIONS = {name: PassObservation(name, name, kind, is_baseline)
                for name, kind, is_baseline in _core.pass_observations()}
for _name, _base in (*((f"{array}Dict", array) for array in _KEYS), ("BitcodeFile", "Bitcode")):
    OBSERVATIONS[_name] = replace(OBSERVATIONS[_base], name=_name)


def find_pass_observation(name: str) -> PassObservation:
    """LookupError: there is none of this name."""
    return OBSERVATIONS[checked_name("observation", name, OBSERVATIONS)]
