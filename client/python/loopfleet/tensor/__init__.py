"""Lazy tensors with named dimensions: write what is to be computed, let one kernel compute it, and change how.

    import loopfleet.tensor as lt
    m, n, k = lt.symbols("m n k")
    a, b = lt.rand(128, 64).to(m, k), lt.rand(64, 32).to(k, n)
    c = (a * b).sum(k)
    print(c.shape, c.numpy())

See docs/TENSORS.md.
"""

from __future__ import annotations

import os as _os
import sys as _sys

import numpy as _numpy

from .. import _core
from .._core import IR, CompiledTensor, Expr, Loop, LoopTree, Size, Symbol, Tensor, grad, where
from . import nn
from .backends import Backend, backends, get_default_backend, set_default_backend, set_threads, set_verify
from .errors import (DTypeError, GradientError, KernelError, ScheduleError, ShapeError, SizeConflict, SizeUnknown,
                     TensorError, ViewError)
from .schedules import Code, Tuned, load_schedules, save_schedules
from .schedules import benchmark as _benchmark
from .schedules import tune as _tune

__all__ = ["Backend", "Code", "CompiledTensor", "DTypeError", "Expr", "GradientError", "IR", "KernelError", "Loop", "LoopTree", "ScheduleError", "ShapeError", "Size",
           "SizeConflict", "SizeUnknown", "Symbol", "SymbolGenerator", "Tensor", "TensorError", "Tuned", "ViewError",
           "arange", "backends", "compile", "from_dlpack", "get_default_backend", "grad", "load_schedules", "nn", "ones", "rand",
           "save_schedules", "set_default_backend", "set_threads", "set_verify", "symbols", "where", "zeros"]


def symbols(names: str) -> list[Symbol]:
    """symbols("m n k"): one new symbol for each name."""
    return [Symbol(name) for name in names.split()]


class SymbolGenerator:
    """Symbols by attribute: ``s.m`` is the same symbol each time, and another one than that of any other generator."""

    def __getattr__(self, name: str) -> Symbol:
        if name.startswith("__"):
            raise AttributeError(name)
        symbol = self.__dict__[name] = Symbol(name)
        return symbol

    def __enter__(self) -> SymbolGenerator:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def rand(*sizes: int, seed: int | None = None) -> Tensor:
    """A leaf of random numbers from 0 to 1."""
    leaf = zeros(*sizes)
    return leaf.set(_numpy.random.default_rng(seed).random(leaf.shape, dtype=_numpy.float32))


def ones(*sizes: int) -> Tensor:
    """A leaf of ones with fresh symbols; without sizes, of rank 0."""
    return Tensor(*sizes).set(1) if sizes else Tensor(1.0)


def zeros(*sizes: int) -> Tensor:
    """A leaf of zeros with fresh symbols; without sizes, of rank 0."""
    return Tensor(*sizes) if sizes else Tensor(0.0)


def arange(*range: float) -> Tensor:
    """As numpy.arange: a leaf with one dim."""
    return Tensor(_numpy.arange(*range, dtype=_numpy.float32))


def from_dlpack(array: object) -> Tensor:
    """A leaf that shares the array's memory: float32, on the CPU, dense. Writes to that memory are not noticed by what
    was computed before; call force_recompute(). DTypeError: it has no `__dlpack__`, or other elements."""
    if not hasattr(array, "__dlpack__"):
        raise DTypeError(f"from_dlpack: a {type(array).__name__} has no __dlpack__")
    return Tensor(array, copy=False)


def compile(tensor: Tensor, inputs: list[Tensor]) -> CompiledTensor:
    """A function of arrays, one for each of ``inputs``, which are leaves of ``tensor`` with known sizes. f(x, y) gives an
    array; f(x, y, out=o) writes into one. Other leaves keep the values that they have when it is called. Only shapes are
    checked for each call. Arrays of float32 in C order are read where they are."""
    return CompiledTensor(tensor, list(inputs))


def _origin() -> str:
    frame = _sys._getframe(0)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""


_HERE = _os.path.dirname(__file__)
if _os.environ.get("LOOPFLEET_TRACE") == "1":
    _core.set_origin_of(_origin)

Tensor.__array_ufunc__ = None  # np.float32(2) * t is a tensor; with an array, arithmetic is a TypeError
Tensor.benchmark = _benchmark
Tensor.tune = _tune
Tensor.code = property(lambda self: Code(self.loop_tree.serialize()), doc="The C text of the schedule; called with a format, other code.")
