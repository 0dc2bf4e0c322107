"""loop_tool's names over loopfleet, for code that was written for it:

    import loopfleet.loop_tool as lt

Tensors are those of loopfleet.tensor, trees and IRs those of loopfleet; this module adds what only loop_tool had.
See docs/TENSORS.md.
"""

from __future__ import annotations

import enum as _enum
import sys as _sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Union

import numpy as _numpy

from .. import _core
from .._core import IR, Loop, LoopTree
from ..tensor import (Backend, DTypeError, Expr, GradientError, KernelError, ScheduleError, ShapeError, Size,
                      SizeConflict, SizeUnknown, Symbol, SymbolGenerator, Tensor, TensorError, ViewError, arange, backends,
                      compile, from_dlpack, get_default_backend, grad, load_schedules, nn, ones, rand, save_schedules, set_default_backend,
                      set_threads, set_verify, symbols, where, zeros)
from ..tui import ui

_sys.modules[__name__ + ".nn"] = nn  # import loopfleet.loop_tool.nn


class Operation(_enum.IntEnum):
    """The operations of an IR, by loop_tool's numbers; ours begin at 32. Equal to their names, which ``IR.op`` gives, but
    hashed as numbers: for a set or a dictionary, ``Operation(name)``."""

    constant = 0
    write = 1
    read = 2
    view = 3
    copy = 4
    add = 5
    subtract = 6
    multiply = 7
    divide = 8
    min = 9
    max = 10
    log = 11
    exp = 12
    sqrt = 13
    abs = 14
    negate = 15
    reciprocal = 16
    name_op = 17
    greater = 32
    greater_equal = 33
    equal = 34
    select = 35
    tanh = 36
    erf = 37
    sin = 38
    cos = 39
    floor = 40
    ceil = 41
    round = 42
    sign = 43
    power = 44

    @classmethod
    def _missing_(cls, value: object) -> Operation | None:
        return cls.__members__.get(value) if isinstance(value, str) else None

    def __eq__(self, other: object) -> bool:
        return self.name == other if isinstance(other, str) else int(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = _enum.IntEnum.__hash__


add, mul, sub, div = Operation.add, Operation.multiply, Operation.subtract, Operation.divide
read, write, view, copy, constant = Operation.read, Operation.write, Operation.view, Operation.copy, Operation.constant
subtract, multiply, divide, negate, reciprocal = (Operation.subtract, Operation.multiply, Operation.divide, Operation.negate,
                                                  Operation.reciprocal)
min, max, log, exp, sqrt, abs, name = (Operation.min, Operation.max, Operation.log, Operation.exp, Operation.sqrt, Operation.abs,
                                       Operation.name_op)


class RawTensor:
    """``size`` floats without a shape, for trees that are called directly."""

    def __init__(self, size: int, hardware: str = "default"):
        if hardware not in ("default", "cpu"):
            raise TensorError(f"RawTensor: there is no hardware '{hardware}': use cpu")
        self._data = _numpy.zeros(size, _numpy.float32)

    def set(self, value: Any) -> RawTensor:
        """One number for all, or as many as there are, of any shape."""
        values = _numpy.asarray(value, _numpy.float32)
        if values.ndim > 0 and values.size != self._data.size:
            raise ShapeError(f"set: {values.size} values for {self._data.size} elements")
        self._data[:] = values.reshape(-1) if values.ndim > 0 else values
        return self

    def randn(self, mean: float = 0, stddev: float = 1) -> None:
        self._data[:] = _numpy.random.default_rng().normal(mean, stddev, self._data.size)

    def to_numpy(self) -> _numpy.ndarray:
        """A copy."""
        return self._data.copy()

    numpy = to_numpy

    def numel(self) -> int:
        return self._data.size

    def dump(self) -> str:
        shown = [f"{value:g}" for value in self._data]
        if len(shown) > 8:
            shown = [*shown[:4], "...", *shown[-4:]]
        return f"numel: {self._data.size}, [{', '.join(shown)}]"

    __repr__ = dump


AnyTensor = Union[RawTensor, Tensor, _numpy.ndarray]


class Compiled:
    """A tree's code; called with tensors for the program's inputs, then for its outputs, which are set."""

    def __init__(self, loop_tree: LoopTree, interpreted: bool = False):
        self._ir = loop_tree.serialize()
        self._function = _core.TreeFunction(self._ir, interpreted)
        self._inputs = self._function.input_count

    def __call__(self, tensors: Sequence[AnyTensor], sync: bool = True) -> None:
        """Runs on inputs, then outputs. ``sync`` is loop_tool's: a call always waits for the end."""
        arrays = [self._array(tensor, place) for place, tensor in enumerate(tensors)]
        self._function(arrays)
        for tensor, array in list(zip(tensors, arrays))[self._inputs:]:
            if isinstance(tensor, Tensor):
                tensor.set(array)

    def _array(self, tensor: AnyTensor, place: int) -> _numpy.ndarray:
        if isinstance(tensor, RawTensor):
            return tensor._data
        if isinstance(tensor, Tensor):
            return tensor.numpy() if place < self._inputs else _numpy.empty(tensor.shape, _numpy.float32)
        return tensor

    @property
    def code(self) -> str:
        return _core.c_source_of(self._ir)


def cpu(loop_tree: LoopTree, parallel: Iterable[int] = (), root: int = -1) -> Compiled:
    """The tree's code for this processor. ``parallel``: loops to annotate first."""
    if root != -1:
        raise TensorError(f"cpu(root={root}): whole trees only, -1")
    for ref in parallel:
        loop_tree = loop_tree.annotate(ref, "parallel")
    return Compiled(loop_tree)


def cpp(loop_tree: LoopTree) -> Compiled:
    return Compiled(loop_tree)


def cpu_interpreted(loop_tree: LoopTree) -> Compiled:
    """The tree's loops, walked without a compiler."""
    return Compiled(loop_tree, interpreted=True)


def load_lib(path: str) -> None:
    """loop_tool's way to add a backend. TensorError, always: the backends are those of ``backends()``."""
    raise TensorError(f"load_lib('{path}'): backends are built in: {', '.join(backends())}")


class CompilerAllocation:
    """``size`` elements of a buffer."""

    def __init__(self, size: int):
        self.size = size

    def __repr__(self) -> str:
        return f"<CompilerAllocation size={self.size}>"


class Compiler:
    """``allocations``: for each operation of the tree, the elements of the buffer for its result."""

    def __init__(self, loop_tree: LoopTree):
        self.allocations = {node: CompilerAllocation(size) for node, size in _core.allocations_of(loop_tree.serialize())}


def set_default_hardware(hardware: str) -> None:
    if hardware != "cpu":
        raise TensorError(f"cannot find hardware: '{hardware}'; there is cpu")


def _call_tree(self: LoopTree, tensors: Sequence[AnyTensor]) -> None:
    """Walks the loops of the tree over tensors for the program's inputs, then for its outputs, which are set."""
    Compiled(self, interpreted=True)(tensors)


LoopTree.__call__ = _call_tree
Tensor.to_numpy = lambda self: self.numpy(copy=True)
Tensor.compiled = property(lambda self: Compiled(self.loop_tree), doc="The code of its schedule.")


def _by_method(name: str) -> Callable[..., Any]:
    def call(tree: LoopTree, *arguments: Any) -> Any:
        return getattr(tree, name)(*arguments)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"tree.{name}(...)"
    return call


# loop_tool's functions of trees are methods here.
split, merge, swap, try_swap = map(_by_method, ("split", "merge", "swap", "try_swap"))
annotate, add_loop, remove_loop, swap_loops, swap_vars = map(_by_method, ("annotate", "add_loop", "remove_loop", "swap_loops", "swap_vars"))
decrease_reuse, increase_reuse = map(_by_method, ("decrease_reuse", "increase_reuse"))
disable_reuse, enable_reuse = map(_by_method, ("disable_reuse", "enable_reuse"))
copy_input, delete_copy, swap_nodes, map_ref = map(_by_method, ("copy_input", "delete_copy", "swap_nodes", "map_ref"))
next_ref, previous_ref, trivially_parallel = map(_by_method, ("next_ref", "previous_ref", "trivially_parallel"))

deserialize = IR.parse
