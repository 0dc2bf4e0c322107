"""Action and observation spaces by name."""

from __future__ import annotations

import numbers
import operator
import string
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from .._core import nearest

ROW_WIDTH = {"agent20": 20, "agent58": 58}
STRIDE_BUCKETS = {"agent20": 16, "agent58": 32}
MOST_LOOPS = 256  # rows, as of `loopfleet replay`
DEFAULT_MAX_LOOPS = {"agent20": 10, "agent58": 20}


class _TypeSpace(spaces.Space):
    """Any value of a type."""

    type_name = ""

    def __init__(self) -> None:
        super().__init__(None, None)

    def contains(self, x: Any) -> bool:
        return type(x).__name__ == self.type_name

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class NoObservation(_TypeSpace):
    """Of an environment that observes nothing by default: its only member is None, as in CompilerGym."""

    type_name = "NoneType"

    def sample(self, mask: object = None, probability: object = None) -> None:
        return None


class GraphSpace(_TypeSpace):
    """ProGraML's graphs: any networkx.MultiDiGraph."""

    type_name = "MultiDiGraph"


class BytesSpace(_TypeSpace):
    """Bitcode: any bytes."""

    type_name = "bytes"


class NamedDiscrete(spaces.Discrete):
    """A Discrete space with named actions."""

    def __init__(self, names: Sequence[str], name: str = ""):
        if not names:
            raise ValueError("action_space has no actions")
        super().__init__(len(names))
        self.names = list(names)
        self.name = name

    @property
    def flags(self) -> list[str]:
        """CompilerGym's word for the names."""
        return self.names

    def __getitem__(self, name: str) -> int:
        """The index of an action."""
        try:
            return self.names.index(name)
        except ValueError:
            raise LookupError(f"unknown action '{name}'{nearest(name, self.names)}; "
                              f"valid: {', '.join(self.names)}") from None

    def number_of(self, action: Any) -> int:
        """The index of an action that is given by its number or its name. LookupError: there is none."""
        if isinstance(action, str):
            return self[action]
        number = whole_number(action)
        if not 0 <= number < len(self.names):
            raise LookupError(f"there is no action {number}; valid: 0 to {len(self.names) - 1}")
        return number

    def to_string(self, actions: int | Iterable[int]) -> str:
        numbers = [actions] if isinstance(actions, (int, np.integer)) else actions
        return ",".join(self.names[number] for number in numbers)

    def from_string(self, text: str) -> list[int]:
        return [self[name] for name in text.replace(",", " ").split()]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedDiscrete) and self.names == other.names

    def __repr__(self) -> str:
        return f"NamedDiscrete([{', '.join(self.names)}])"


def checked_name(what: str, name: str, known: Iterable[str]) -> str:
    """``name``. LookupError, with the nearest: it is none of the ``known``."""
    if not isinstance(name, str):
        raise TypeError(f"{what} must be a name, not {name!r:.60}; valid: {', '.join(known)}")
    if name not in known:
        raise LookupError(f"unknown {what} '{name}'{nearest(name, list(known))}; valid: {', '.join(known)}")
    return name


def checked_flag(argument: str, value: Any) -> bool:
    """TypeError: it is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{argument} must be True or False, not {value!r:.60}")
    return bool(value)


def checked_number(argument: str, value: Any, *, above: float | None = None) -> float:
    """At least 0, or more than ``above``. TypeError: it is no number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{argument} must be a number, not {value!r:.60}")
    if not (value >= 0 if above is None else value > above):
        raise ValueError(f"{argument} must be {'at least 0' if above is None else f'more than {above:g}'}, not {value}")
    return value


def whole_number(action: Any, what: str = "an action") -> int:
    """TypeError: it is none, such as 1.5."""
    try:
        return operator.index(action.item() if isinstance(action, np.ndarray) and action.size == 1 else action)
    except TypeError:
        raise TypeError(f"{what} is a whole number, not {action!r}") from None


def whole_numbers(actions: Any) -> np.ndarray:
    """int64, of the same shape. TypeError: not all are whole numbers."""
    array = np.asarray(actions)
    if array.size and array.dtype.kind not in "iub":
        raise TypeError(f"actions are whole numbers, not of the type {array.dtype}")
    return array.astype(np.int64)


def action_names(chosen: str | Iterable[str] | None, known: dict[str, tuple[str, ...]], default: str
                 ) -> tuple[str, list[str]]:
    """(name, actions) of a named set, or ("", actions) of a list of names."""
    if chosen is None:
        chosen = default
    if isinstance(chosen, str):
        if chosen not in known:
            raise LookupError(f"unknown action space '{chosen}'{nearest(chosen, list(known))}; "
                              f"valid: {', '.join(known)}, or a list of actions")
        return chosen, list(known[chosen])
    return "", list(chosen)


def observation_space(name: str, *, actions: int, features: str, max_loops: int) -> spaces.Space:
    """The space of one observation; LookupError if it is not an array, number or text."""
    infinity = np.float32(np.inf)
    if name == "loops_tensor":
        return spaces.Box(0, infinity, (max_loops * ROW_WIDTH[features],), np.float32)
    if name in ("stride_tensor", "stride_histogram"):
        return spaces.Box(0, infinity, (STRIDE_BUCKETS[features],), np.float32)
    if name == "5_prev_actions_tensor":
        return spaces.Box(0, 1, (5 * actions,), np.float32)
    if name == "action_state":
        return spaces.Box(0, 1 << 36, (3,), np.int64)
    if name in ("flops", "gflops", "runtime"):
        return spaces.Box(0, np.inf, (), np.float64)
    if name in ("loop_tree", "ir", "dot", "dot_ir", "dot_tree", "dot_graph", "tree_key", "mode"):
        return spaces.Text(1 << 20, charset=string.printable)
    raise LookupError(f"'{name}' has no Gymnasium space: read it by env.observation['{name}']")
