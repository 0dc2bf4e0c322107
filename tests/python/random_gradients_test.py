"""Gradients of random graphs, under random legal schedules, against central differences of the same graphs in float64.
LOOPFLEET_GRADIENTS says how many; LOOPFLEET_GRAPH_SEED where to begin, so that a failure can be run alone."""

import math
import os

import numpy as np

import loopfleet.tensor as lt
from random_graphs import Maker, Named, walked
from tensors import own_cache  # noqa: F401 (a fixture)

GRADIENTS = int(os.environ.get("LOOPFLEET_GRADIENTS", "500"))
FIRST = int(os.environ.get("LOOPFLEET_GRAPH_SEED", "0"))
TOLERANCE = 1e-3
erf_of = np.vectorize(math.erf)


class Smooth(Maker):
    """Graphs of leaves whose values lie beside no kink, with more operations. ``moved``: what is added to the values of
    each leaf. The graph of a seed is the same whatever is added."""

    def __init__(self, seed, moved=None):
        self.moved = moved or {}
        self.leaves = []
        super().__init__(seed)

    def leaf(self):
        symbols = self.random.sample(list(self.sizes), self.random.randint(0, 3))
        values = self.numbers.uniform(0.2, 1.5, [self.sizes[symbol] for symbol in symbols])
        values *= self.numbers.choice([-1, 1], values.shape)
        values = np.float32(values).astype(np.float64) + self.moved.get(len(self.leaves), 0)
        tensor = lt.Tensor(*symbols).set(values if symbols else float(values))
        self.leaves.append(Named(tensor, values, symbols, exact=True))
        return self.leaves[-1]

    def function(self):
        """One that its operand is in the domain of, by some margin."""
        a = self.any()
        # What is at least 1 and not large, for functions of positive numbers.
        tensor, values = (a.tensor * a.tensor * 0.1 + 1).min(20), np.minimum(a.values * a.values * 0.1 + 1, 20)
        name, function = self.random.choice(
            [("log", np.log), ("sqrt", np.sqrt), ("reciprocal", np.reciprocal), ("cos", np.cos), ("sin", np.sin),
             ("erf", erf_of), ("root", lambda x: x ** 1.5), ("power", lambda x: 2 ** (x * 0.25)), ("inverse", lambda x: 3 / x)])
        made = {"root": lambda: tensor ** 1.5, "power": lambda: 2 ** (tensor * 0.25), "inverse": lambda: 3 / tensor}.get(
            name, lambda: getattr(tensor, name)())()
        return Named(made, function(values), a.symbols)

    def between(self):
        """A division or a power of two tensors."""
        a, b = self.any(), self.any()
        symbols = a.symbols + [symbol for symbol in b.symbols if symbol not in a.symbols]
        x, y = a.aligned(symbols), b.aligned(symbols)
        if np.broadcast(x, y).size > 3000:
            return None
        base, power = np.minimum(y * y * 0.1, 9) + 1, np.tanh(x)
        denominator = (b.tensor * b.tensor * 0.1).min(9) + 1
        if self.random.random() < 0.5:
            return Named(a.tensor / denominator, x / base, symbols)
        made = denominator ** a.tensor.tanh()
        return Named(made, (base ** power).transpose([symbols.index(s) for s in made.symbolic_shape]), made.symbolic_shape)

    def product(self):
        a = self.with_dim()
        if a is None:
            return None
        axis = self.random.randrange(len(a.symbols))
        values = (np.tanh(a.values) * 0.3 + 1).prod(axis)
        return Named((a.tensor.tanh() * 0.3 + 1).prod(a.symbols[axis]), values, [s for i, s in enumerate(a.symbols) if i != axis])

    def diagonal(self):
        """The elements at equal indices along two dims."""
        a = self.with_dim()
        if a is None or len(a.symbols) < 2 or a.values.shape[0] != a.values.shape[1]:
            return None
        both = lt.Symbol("d")
        tensor = a.tensor[(both, both, *a.symbols[2:])]
        return Named(tensor, np.moveaxis(np.diagonal(a.values), -1, 0), [both, *a.symbols[2:]])

    def steps(self):
        return super().steps() + [self.function] * 2 + [self.between, self.product, self.diagonal]


def loss_of(seed, moved=None):
    """The maker, the loss as a tensor, and in float64."""
    maker = Smooth(seed, moved)
    named = maker.graph()
    weights = np.random.default_rng(seed).uniform(-1, 1, named.values.shape)
    weights = np.float32(weights).astype(np.float64)
    weight = lt.Tensor(*named.symbols).set(weights) if named.symbols else lt.Tensor(float(weights))
    return maker, (named.tensor * weight).sum(), float((named.values * weights).sum())


def slopes(seed, number, direction):
    """First and second derivative along a direction, by central differences; None: a kink is near."""
    def value(step):
        return loss_of(seed, {number: step * direction})[2]

    found = []
    for step in (1e-4, 3e-5):
        above, here, below = value(step), value(0), value(-step)
        found.append(((above - below) / (2 * step), (above - 2 * here + below) / step ** 2))
        scale = abs(above - here) + abs(here - below)
        # At a kink the two sides have other slopes, whatever the step.
        if abs(above - 2 * here + below) > 0.02 * scale and scale > 1e-9:
            return None
    (first, second), (again, _) = found
    return (again, second) if abs(first - again) <= 1e-4 * max(abs(again), 1e-3) else None


def gradient_of(seed, maker, loss):
    """Number, leaf and gradient of a random leaf that the loss depends on; None: it depends on none."""
    for number in maker.random.sample(range(len(maker.leaves)), len(maker.leaves)):
        leaf = maker.leaves[number]
        try:
            return number, leaf, lt.grad(loss, [leaf.tensor], allow_division=True)[0]
        except lt.GradientError:
            moved = {number: 1e-2 * np.ones(leaf.values.shape)}
            assert loss_of(seed, moved)[2] == loss_of(seed)[2], f"seed {seed}: the loss does depend on leaf {number}"
    return None


def test_gradients_of_random_graphs():
    lt.set_verify("never")  # each result is compared here
    checked = kinks = unrelated = seconds = 0
    try:
        for seed in range(FIRST, FIRST + GRADIENTS):
            maker, loss, _ = loss_of(seed)
            found = gradient_of(seed, maker, loss)
            if found is None:
                unrelated += 1
                continue
            number, leaf, gradient = found
            assert gradient.symbolic_shape == leaf.symbols and gradient.shape == list(leaf.values.shape), f"seed {seed}"
            if gradient.segments and seed % 3:
                walked(gradient, maker.random, threads=1)
            values = gradient.numpy().astype(np.float64)
            directions = [np.random.default_rng([seed, i]).uniform(-1, 1, leaf.values.shape) for i in range(2)]
            for _ in range(4):  # single elements
                one = np.zeros(leaf.values.size)
                one[maker.random.randrange(one.size)] = 1
                directions.append(one.reshape(leaf.values.shape))
            for direction in directions:
                expected = slopes(seed, number, direction)
                if expected is None:
                    kinks += 1
                    continue
                checked += 1
                slope = float((values * direction).sum())
                scale = max(np.abs(values * direction).sum(), abs(expected[0]), 1e-3)
                assert abs(slope - expected[0]) <= TOLERANCE * scale, f"seed {seed}, leaf {number}: {slope}, not {expected[0]}"
            if seed % 5 == 0 and (expected := slopes(seed, number, directions[0])):
                seconds += second_derivative(seed, leaf, gradient, directions[0], expected[1])
    finally:
        lt.set_verify("once")
    if GRADIENTS >= 100:
        assert checked > 4 * GRADIENTS and kinks < checked / 20 and unrelated < GRADIENTS / 50, (checked, kinks, unrelated)
        assert seconds > GRADIENTS / 20


def second_derivative(seed, leaf, gradient, direction, expected):
    """The gradient of a gradient, along a direction; whether there was something to compare."""
    along = lt.Tensor(*leaf.symbols).set(direction) if leaf.symbols else lt.Tensor(float(direction))
    try:
        second, = lt.grad((gradient * along).sum(), [leaf.tensor], allow_division=True)
    except lt.GradientError:
        assert abs(expected) < 1e-3, f"seed {seed}: the gradient does not depend on the leaf"
        return False
    values = second.numpy().astype(np.float64)
    scale = max(np.abs(values * direction).sum(), abs(expected), 1)
    assert abs((values * direction).sum() - expected) <= 5 * TOLERANCE * scale, f"seed {seed}: the second derivative"
    return True
