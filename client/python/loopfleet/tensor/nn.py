"""Layers, made of tensor operations: each is part of the one kernel that its result becomes. Dims are symbols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt

from .._core import Expr, Size, Symbol, Tensor, where
from .errors import ShapeError

__all__ = ["attention", "batch_norm", "conv", "fill", "hardswish", "layer_norm", "linear", "mean", "pad", "pool", "relu",
           "relu6", "sigmoid", "softmax", "swish", "tanh"]


def fill(constant: float, symbolic_shape: Sequence[Symbol] = ()) -> Tensor:
    """A tensor of rank 0, which broadcasts to any shape; so `symbolic_shape`, which loop_tool has, changes nothing."""
    return Tensor(float(constant))


def _dims_of(T: Tensor) -> str:
    return f"[{', '.join(dim.name for dim in T.symbolic_shape)}]"


def _some(what: str, T: Tensor, dims: Iterable[Symbol]) -> list[Symbol]:
    """``dims``. ShapeError: there are none, which would reduce over all of T's."""
    chosen = list(dims)
    if not chosen and T.symbolic_shape:
        raise ShapeError(f"{what} over no dims: the tensor has {_dims_of(T)}, name one or more")
    return chosen


def mean(X: Tensor, dims: Iterable[Symbol]) -> Tensor:
    return X.mean(*_some("mean", X, dims))


def sigmoid(T: Tensor) -> Tensor:
    # Below -88, exp(-T) overflows and the gradient is 0 times infinity. T.max(-88) would hide a NaN.
    return ((-where(T < -88, -88, T)).exp() + 1).reciprocal()


def swish(T: Tensor) -> Tensor:
    return T * sigmoid(T)


def relu(T: Tensor) -> Tensor:
    return T.max(0)


def relu6(T: Tensor) -> Tensor:
    return T.max(0).min(6)


def hardswish(T: Tensor) -> Tensor:
    return T * relu6(T + 3) * (1 / 6)


def tanh(T: Tensor) -> Tensor:
    return T.tanh()


def linear(X: Tensor, W: Tensor, bias: Tensor | None = None) -> Tensor:
    """The product of X and W over the dims that they share. ShapeError: they share none."""
    others = set(W.symbolic_shape)
    shared = [dim for dim in X.symbolic_shape if dim in others]
    if not shared:
        namesakes = {dim.name for dim in X.symbolic_shape} & {dim.name for dim in others}
        hint = f"; their symbols named {', '.join(sorted(namesakes))} are different ones: use the same object"
        raise ShapeError(f"linear: X with {_dims_of(X)} and W with {_dims_of(W)} share no dim{hint if namesakes else ''}")
    Y = (X * W).sum(*shared)
    return Y if bias is None else Y + bias


def pad(X: Tensor, *args: tuple[Symbol, int | tuple[int, int]]) -> Tensor:
    """pad(X, (y, 1), (x, (0, 2))): zeros before and after a dim. Padded dims get new symbols of the same name."""
    for dim, amount in args:
        X = X.pad(dim, *amount) if isinstance(amount, tuple) else X.pad(dim, amount)
    return X


def conv(X: Tensor, W: Tensor, spatial: Sequence[Symbol], window: Sequence[Symbol], stride: int = 1,
         channel_reduce: bool = True) -> Tensor:
    """A convolution without padding: ``spatial`` dims of X under ``window`` dims of W. The result has the other dims of
    X, the new spatial ones (named yo for y), then the other dims of W; dims that X and W share are summed over, unless
    ``channel_reduce`` is false."""
    if len(spatial) != len(window):
        raise ValueError(f"conv: {len(spatial)} spatial dims and {len(window)} of the window")
    outer = [dim for dim in X.symbolic_shape if dim not in spatial]
    new = [Symbol(dim.name + "o") for dim in spatial]
    under = X.to(*outer, *new, *window,
                 constraints=[(dim, Expr(stride) * at + k) for dim, at, k in zip(spatial, new, window)])
    over = list(window)
    if channel_reduce:
        over += [dim for dim in outer if dim in set(W.symbolic_shape)]
    return (under * W).sum(*over)


def pool(X: Tensor, spatial: Sequence[Symbol], sizes: Sequence[int], kind: str = "max", stride: int | None = None) -> Tensor:
    """The greatest element (``max``) or the mean (``mean``) of each window of ``sizes`` along ``spatial``. Windows follow
    each other without overlap, unless ``stride`` says otherwise; those that would leave X are left out."""
    if kind not in ("max", "mean"):
        raise ValueError(f"pool: kind '{kind}': use max or mean")
    if len(spatial) != len(sizes):
        raise ValueError(f"pool: {len(spatial)} dims and {len(sizes)} sizes")
    outer = [dim for dim in X.symbolic_shape if dim not in spatial]
    new = [Symbol(dim.name + "o") for dim in spatial]
    window = [Symbol(dim.name + "w") for dim in spatial]
    constraints = [(dim, Expr(stride or size) * at + k) for dim, size, at, k in zip(spatial, sizes, new, window)]
    constraints += [(Size(k), Expr(size)) for k, size in zip(window, sizes)]
    windows = X.to(*outer, *new, *window, constraints=constraints)
    return windows.max_reduce(*window) if kind == "max" else windows.mean(*window)


def batch_norm(x: Tensor, mean: Tensor, var: Tensor, weight: Tensor, bias: Tensor, eps: float | Tensor | None = None) -> Tensor:
    return (x - mean) * weight / (var + (1e-5 if eps is None else eps)).sqrt() + bias


def softmax(T: Tensor, *dims: Symbol) -> Tensor:
    """Over ``dims``; over all without any."""
    dims = dims or tuple(T.symbolic_shape)
    powers = (T - T.max_reduce(*dims)).exp()
    return powers / powers.sum(*dims)


def layer_norm(T: Tensor, dims: Iterable[Symbol], weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:
    dims = _some("layer_norm", T, dims)
    centred = T - T.mean(*dims)
    normed = centred / ((centred * centred).mean(*dims) + eps).sqrt()
    if weight is not None:
        normed = normed * weight
    return normed if bias is None else normed + bias


def attention(Q: Tensor, K: Tensor, V: Tensor, keys: Symbol, depth: Symbol, scale: float | None = None) -> Tensor:
    """softmax(Q K * scale) V: Q and K share ``depth``, K and V share ``keys``; other dims that all share are batches.
    ``scale``: 1 / sqrt(size of depth), unless given."""
    if scale is None:
        scale = 1 / sqrt(Q.shape[Q.symbolic_shape.index(depth)])
    return (softmax((Q * K).sum(depth) * scale, keys) * V).sum(keys)
