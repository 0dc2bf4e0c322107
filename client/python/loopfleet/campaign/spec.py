"""A campaign's specification: how many points, of which benchmarks and walks, measured how precisely."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from .. import _core
from ..actions import ACTION_SPACES
from ..errors import LoopfleetError
from ..toml_file import read_toml

_KINDS = {"str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false",
          "list[str]": "a list of texts"}  # types of a specification's fields


class BadSpec(LoopfleetError):
    """A specification that no run can measure."""


@dataclass(frozen=True)
class Spec:
    """The fields of a specification file; all except ``name``, ``points`` and ``benchmarks`` are
    optional."""

    name: str
    points: int
    benchmarks: list[str]            # URIs, or names of data sets to draw from
    seed: int = 0
    actions: list[str] = field(default_factory=list)  # default: all of the benchmark's dialect
    min_length: int = 0              # actions in a walk
    max_length: int = 20
    rules: str = "structural"
    merge_all_first: bool = False
    device: str = ""                 # "cpu", "cuda", "any"; default: the benchmark's own
    labels: list[str] = field(default_factory=list)   # a worker must carry all of them
    threads: int = 1
    cache: str = "warm"
    precision: float = 0.0           # relative half-width of the interval; 0: the default
    budget_ms: float = 0.0
    cut_above_ns: int = 0
    paired_share: float = 0.0        # share of points measured `paired_times` times, on several workers
    paired_times: int = 2
    confirm_share: float = 0.0       # share of points measured again at the end, with as many winners

    def __post_init__(self) -> None:
        def need(good: bool, what: str) -> None:
            if not good:
                raise BadSpec(what)

        for each in fields(self):
            value = getattr(self, each.name)
            need(_is_of(each.type, value), f"{each.name} must be {_KINDS[each.type]}, not {value!r}")
        # The default folder is beside the specification.
        parts = Path(self.name).parts
        need(bool(parts) and ".." not in parts and not self.name.startswith("/"),
             f"name must be one that a folder can have, not {self.name!r}")
        need(0 <= self.seed < 1 << 63, f"seed must be from 0 to 2^63 - 1, not {self.seed}")
        need(self.points >= 1, f"points must be at least 1, not {self.points}")
        need(bool(self.benchmarks), "benchmarks must name at least one")
        need(0 <= self.min_length <= self.max_length <= 1000,
             f"lengths must be 0 <= min_length <= max_length <= 1000, not {self.min_length} and {self.max_length}")
        need(0 <= self.paired_share <= 1, f"paired_share must be from 0 to 1, not {self.paired_share}")
        need(0 <= self.confirm_share <= 1, f"confirm_share must be from 0 to 1, not {self.confirm_share}")
        need(self.paired_times >= 2, f"paired_times must be at least 2, not {self.paired_times}")

    @property
    def digest(self) -> str:
        """Of all fields but ``confirm_share``, which changes no point: it may be given later."""
        given = asdict(self)
        del given["confirm_share"]
        return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()


def _is_of(kind: str, value: Any) -> bool:
    if kind == "list[str]":
        return isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)
    if isinstance(value, bool):  # Python's bool is an int
        return kind == "bool"
    return isinstance(value, {"str": str, "int": int, "float": (int, float), "bool": bool}[kind])


def read_spec(path: str | Path) -> Spec:
    """The specification in a TOML file. BadSpec names the file."""
    try:
        given = read_toml(path)
    except LoopfleetError as error:
        raise BadSpec(str(error)) from error
    known = [each.name for each in fields(Spec)]
    for key in given:
        if key not in known:
            raise BadSpec(f"{path}: unknown key '{key}'{_core.nearest(key, known)}; valid: {', '.join(known)}")
    if isinstance(space := given.get("actions"), str):
        if space not in ACTION_SPACES:
            raise BadSpec(f"{path}: unknown action space '{space}'{_core.nearest(space, list(ACTION_SPACES))}; "
                                 f"valid: {', '.join(ACTION_SPACES)}, or a list of actions")
        given["actions"] = list(ACTION_SPACES[space])
    try:
        return Spec(**given)
    except BadSpec as error:
        raise BadSpec(f"{path}: {error}") from error
    except TypeError as error:
        raise BadSpec(f"{path}: {str(error).replace('Spec.__init__()', 'it')}") from error
