"""Random graphs of tensor operations, with what NumPy makes of them in float64."""

import random

import numpy as np

import loopfleet.tensor as lt
from loopfleet import _core

MOST_ELEMENTS = 3000


class Named:
    """What NumPy has for a tensor: float64 values and a symbol for each axis. ``exact``: float32 has the same values."""

    def __init__(self, tensor, values, symbols, exact=False):
        self.tensor, self.values, self.symbols, self.exact = tensor, values, list(symbols), exact

    def aligned(self, symbols):
        """The values with one axis for each of ``symbols``; of size 1 where there is none."""
        order = [self.symbols.index(symbol) for symbol in symbols if symbol in self.symbols]
        shape = [self.values.shape[self.symbols.index(symbol)] if symbol in self.symbols else 1 for symbol in symbols]
        return self.values.transpose(order).reshape(shape)


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.sizes = {symbol: self.random.randint(1, 7) for symbol in lt.symbols("a b c d e")}
        self.pool = [self.leaf() for _ in range(self.random.randint(1, 3))]

    def leaf(self):
        symbols = self.random.sample(list(self.sizes), self.random.randint(0, 3))
        values = self.numbers.integers(-3, 4, [self.sizes[symbol] for symbol in symbols]).astype(np.float64) / 2
        tensor = lt.Tensor(*symbols)
        if not symbols:
            tensor.set(float(values))
        else:
            tensor.set(values)
        return Named(tensor, values, symbols, exact=True)

    def any(self):
        # Later ones more often: deeper graphs.
        return self.pool[-1] if self.random.random() < 0.5 else self.random.choice(self.pool)

    def with_dim(self):
        fitting = [named for named in self.pool if named.symbols]
        return self.random.choice(fitting) if fitting else None

    def pointwise(self):
        a = self.any()
        kind = self.random.randrange(3)
        if kind == 0:
            name, function = self.random.choice([("tanh", np.tanh), ("abs", np.abs), ("neg", np.negative), ("sin", np.sin)])
            return Named(getattr(a.tensor, name)(), function(a.values), a.symbols)
        if kind == 1:
            number = self.random.choice([2, 0.5, -1.5, 0])
            name = self.random.choice(["+", "*", "max", "r-"])
            if name == "+":
                return Named(a.tensor + number, a.values + number, a.symbols, a.exact)
            if name == "*":
                return Named(number * a.tensor, a.values * number, a.symbols)
            if name == "max":
                return Named(a.tensor.max(number), np.maximum(a.values, number), a.symbols, a.exact)
            return Named(number - a.tensor, number - a.values, a.symbols, a.exact)
        b = self.any()
        symbols = a.symbols + [symbol for symbol in b.symbols if symbol not in a.symbols]
        x, y = a.aligned(symbols), b.aligned(symbols)
        if x.size and np.broadcast(x, y).size > MOST_ELEMENTS:
            return None
        shape = np.broadcast(x, y).shape
        name = self.random.choice(["+", "-", "*", "max", "min", ">", "where"])
        if name in (">", "where") and not (a.exact and b.exact):
            name = "*"
        made = {"+": lambda: (a.tensor + b.tensor, x + y), "-": lambda: (a.tensor - b.tensor, x - y),
                "*": lambda: (a.tensor * b.tensor, x * y), "max": lambda: (a.tensor.max(b.tensor), np.maximum(x, y)),
                "min": lambda: (a.tensor.min(b.tensor), np.minimum(x, y)), ">": lambda: (a.tensor > b.tensor, (x > y) * 1.0),
                "where": lambda: (lt.where(a.tensor > b.tensor, a.tensor, b.tensor * 2), np.where(x > y, x, 2 * y))}[name]()
        values = np.broadcast_to(made[1], shape)
        return Named(made[0], values, made[0].symbolic_shape, name == ">")

    def reduction(self):
        a = self.with_dim()
        if a is None:
            return None
        over = self.random.sample(a.symbols, self.random.randint(1, len(a.symbols)))
        name, function = self.random.choice([("sum", np.sum), ("max_reduce", np.max), ("min_reduce", np.min), ("mean", np.mean)])
        axes = tuple(a.symbols.index(symbol) for symbol in over)
        return Named(getattr(a.tensor, name)(*over), function(a.values, axis=axes), [s for s in a.symbols if s not in over])

    def renamed(self):
        a = self.with_dim()
        if a is None:
            return None
        symbols = [lt.Symbol(self.random.choice("pqr")) if self.random.random() < 0.5 else symbol for symbol in a.symbols]
        return Named(a.tensor.to(*symbols), a.values, symbols, a.exact)

    def padded(self):
        a = self.with_dim()
        if a is None or a.values.size > MOST_ELEMENTS // 3:
            return None
        axis = self.random.randrange(len(a.symbols))
        before, after = self.random.randint(0, 2), self.random.randint(0, 2)
        outside = self.random.choice([0, 1, -2])
        widths = [(0, 0)] * len(a.symbols)
        widths[axis] = (before, after)
        tensor = a.tensor.pad(a.symbols[axis], before, after, outside=outside)
        return Named(tensor, np.pad(a.values, widths, constant_values=outside), tensor.symbolic_shape, a.exact)

    def window(self):
        a = self.with_dim()
        if a is None:
            return None
        axis = self.random.randrange(len(a.symbols))
        size, stride = self.random.randint(1, 3), self.random.randint(1, 2)
        if a.values.shape[axis] < size or a.values.size * size > MOST_ELEMENTS:
            return None
        out, width = lt.symbols("o w")
        old = a.symbols[axis]
        symbols = [out if symbol == old else symbol for symbol in a.symbols] + [width]
        tensor = a.tensor.to(*symbols, constraints=[(old, stride * out + width), (lt.Size(width), lt.Expr(size))])
        windows = np.lib.stride_tricks.sliding_window_view(a.values, size, axis=axis)
        every = [slice(None)] * windows.ndim
        every[axis] = slice(None, None, stride)
        return Named(tensor, windows[tuple(every)], symbols, a.exact)

    def spread(self):
        """Every second element of the result is one of the input, the others are 0."""
        a = self.with_dim()
        if a is None or a.values.size > MOST_ELEMENTS // 2:
            return None
        axis = self.random.randrange(len(a.symbols))
        old, new = a.symbols[axis], lt.Symbol("s")
        symbols = [new if symbol == old else symbol for symbol in a.symbols]
        tensor = a.tensor.to(*symbols, constraints=[(new, 2 * old), (lt.Size(new), 2 * lt.Size(old))])
        shape = list(a.values.shape)
        shape[axis] *= 2
        values = np.zeros(shape)
        every = [slice(None)] * len(shape)
        every[axis] = slice(None, None, 2)
        values[tuple(every)] = a.values
        return Named(tensor, values, symbols, a.exact)

    def index(self):
        a = self.with_dim()
        if a is None:
            return None
        axis = self.random.randrange(len(a.symbols))
        at = self.random.randrange(-1, a.values.shape[axis])
        tensor = a.tensor[tuple(at if i == axis else symbol for i, symbol in enumerate(a.symbols))]
        return Named(tensor, np.take(a.values, at, axis), [s for i, s in enumerate(a.symbols) if i != axis], a.exact)

    def concatenated(self):
        a = self.with_dim()
        if a is None or a.values.size > MOST_ELEMENTS // 2:
            return None
        axis = self.random.randrange(len(a.symbols))
        other = a.symbols.copy()
        other[axis] = lt.Symbol("t")
        second = (a.tensor * 2).to(*other)
        tensor = a.tensor | second
        return Named(tensor, np.concatenate([a.values, 2 * a.values], axis), tensor.symbolic_shape)

    def transposed(self):
        a = self.with_dim()
        if a is None:
            return None
        order = self.random.sample(range(len(a.symbols)), len(a.symbols))
        symbols = [a.symbols[i] for i in order]
        return Named(a.tensor.transpose(*symbols), a.values.transpose(order), symbols, a.exact)

    def reshaped(self):
        a = self.with_dim()
        if a is None:
            return None
        if len(a.symbols) > 1:
            first = self.random.randrange(len(a.symbols) - 1)
            shape = a.values.shape
            tensor = a.tensor.flatten(*a.symbols[first:first + 2])
            values = a.values.reshape(*shape[:first], shape[first] * shape[first + 1], *shape[first + 2:])
            return Named(tensor, values, tensor.symbolic_shape, a.exact)
        size = a.values.shape[0]
        part = self.random.choice([divisor for divisor in range(1, size + 1) if size % divisor == 0])
        outer, inner = lt.symbols("u v")
        return Named(a.tensor.unflatten(a.symbols[0], outer, (inner, part)), a.values.reshape(-1, part), [outer, inner], a.exact)

    def steps(self):
        return [self.pointwise] * 5 + [self.reduction] * 3 + [
            self.renamed, self.padded, self.window, self.spread, self.index, self.concatenated, self.transposed, self.reshaped]

    def graph(self):
        steps = self.steps()
        for _ in range(self.random.randint(1, 9)):
            made = self.random.choice(steps)()
            if made is not None and made.values.ndim <= 5 and np.abs(made.values).max(initial=0) < 1e4:
                self.pool.append(made)
        return self.pool[-1]


def walked(tensor, choose, threads):
    """Sets a schedule that a random walk from the start schedule leads to. With several threads, a loop whose iterations
    are independent is split over them. Gives whether one is."""
    walk = _core.Walk(ir=tensor.loop_tree.serialize())
    names = ["down", "up", "swap_down", "swap_up", "split_2", "split_4", "merge", "vectorize", "unroll"]
    for _ in range(choose.randrange(8)):
        try:
            walk.apply(choose.choice(names))
        except ValueError:  # no such action in this dialect
            pass
    tree = lt.LoopTree(walk.observe("ir"))
    loops = [ref for ref in tree.loops if tree.trivially_parallel(ref)] if threads > 1 else []
    tensor.loop_tree = tree.parallel(choose.choice(loops)) if loops else tree
    return bool(loops)
