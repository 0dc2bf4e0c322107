"""lt.grad: beside torch, as tensors that are scheduled, tuned, compiled and trained with, and what it refuses."""

import numpy as np
import pytest

import loopfleet.tensor as lt
from learning_packages import learning_package
from tensors import close, numbers, own_cache, product  # noqa: F401 (a fixture)


def leaves(torch, *arrays):
    return [torch.tensor(array, requires_grad=True) for array in arrays]


def agree(loss, tensors, torch_loss, torch_leaves, tolerance=1e-4):
    """Both losses and their gradients."""
    close(loss, torch_loss.detach().numpy(), tolerance)
    torch_loss.backward()
    for gradient, leaf in zip(lt.grad(loss, tensors), torch_leaves, strict=True):
        close(gradient, leaf.grad.numpy(), tolerance)


@pytest.mark.parametrize("stride, padding", [(1, 0), (2, 0), (1, 1), (3, 2)])
def test_convolutions_beside_torch(stride, padding):
    torch = learning_package("torch")
    x, w, weight = numbers(2, 3, 9, 10), numbers(4, 3, 3, 2, seed=1), None
    tx, tw = leaves(torch, x, w)
    expected = torch.nn.functional.conv2d(tx, tw, stride=stride, padding=padding)
    weight = numbers(*expected.shape, seed=2)
    s = lt.SymbolGenerator()
    X, W = lt.Tensor(x), lt.Tensor(w)
    padded = lt.nn.pad(X.to(s.b, s.c, s.y, s.x), (s.y, padding), (s.x, padding))
    _, _, y, x_ = padded.symbolic_shape
    made = lt.nn.conv(padded, W.to(s.o, s.c, s.wy, s.wx), [y, x_], [s.wy, s.wx], stride=stride)
    b, yo, xo, o = made.symbolic_shape
    loss = (made * lt.Tensor(weight).to(b, o, yo, xo)).sum()
    agree(loss, [X, W], (expected * torch.tensor(weight)).sum(), [tx, tw], 2e-4)


def test_attention_beside_torch():
    torch = learning_package("torch")
    q, k, v, weight = numbers(5, 8), numbers(6, 8, seed=1), numbers(6, 4, seed=2), numbers(5, 4, seed=3)
    tq, tk, tv = leaves(torch, q, k, v)
    expected = torch.nn.functional.scaled_dot_product_attention(tq[None], tk[None], tv[None])[0]
    s = lt.SymbolGenerator()
    Q, K, V = lt.Tensor(q), lt.Tensor(k), lt.Tensor(v)
    made = lt.nn.attention(Q.to(s.q, s.d), K.to(s.t, s.d), V.to(s.t, s.e), s.t, s.d)
    loss = (made * lt.Tensor(weight).to(s.q, s.e)).sum()
    agree(loss, [Q, K, V], (expected * torch.tensor(weight)).sum(), [tq, tk, tv])


def test_layer_norm_beside_torch():
    torch = learning_package("torch")
    x, w, b, weight = numbers(7, 16), numbers(16, seed=1), numbers(16, seed=2), numbers(7, 16, seed=3)
    tx, tw, tb = leaves(torch, x, w, b)
    expected = torch.nn.functional.layer_norm(tx, (16,), tw, tb)
    m, n = lt.symbols("m n")
    X, W, B = lt.Tensor(x), lt.Tensor(w), lt.Tensor(b)
    made = lt.nn.layer_norm(X.to(m, n), [n], W.to(n), B.to(n))
    loss = (made * lt.Tensor(weight).to(m, n)).sum()
    agree(loss, [X, W, B], (expected * torch.tensor(weight)).sum(), [tx, tw, tb])


def test_pools_and_activations_beside_torch():
    torch = learning_package("torch")
    x = 3 * numbers(2, 3, 8, 9)
    functional = torch.nn.functional
    s = lt.SymbolGenerator()
    for made, expected in [
            (lambda t: lt.nn.pool(t, [s.y, s.x], [2, 3]), lambda t: functional.max_pool2d(t, (2, 3))),
            (lambda t: lt.nn.pool(t, [s.y, s.x], [3, 3], stride=2), lambda t: functional.max_pool2d(t, 3, stride=2)),
            (lambda t: lt.nn.pool(t, [s.y, s.x], [2, 3], "mean"), lambda t: functional.avg_pool2d(t, (2, 3))),
            (lambda t: lt.nn.softmax(t, s.x), lambda t: functional.softmax(t, -1)),
            (lt.nn.sigmoid, torch.sigmoid), (lt.nn.swish, functional.silu), (lt.nn.relu, functional.relu),
            (lt.nn.hardswish, functional.hardswish), (lt.nn.tanh, torch.tanh)]:
        X = lt.Tensor(x)
        tx, = leaves(torch, x)
        agree((made(X.to(s.b, s.c, s.y, s.x)) ** 2).sum(), [X], (expected(tx) ** 2).sum(), [tx], 2e-4)


@pytest.mark.parametrize("backend", ["cpu", "cpu_interpreted"])
@pytest.mark.parametrize("ours, theirs", [("sigmoid", "sigmoid"), ("swish", "silu")])
def test_activations_have_slopes_far_from_zero(ours, theirs, backend):
    torch = learning_package("torch")
    x = np.array([-1e30, -1000, -100, -89, -88, -87, 0, 88, 100, 1e30], np.float32)
    X = lt.Tensor(x)
    tx, = leaves(torch, x)
    with lt.Backend(backend):
        made = getattr(lt.nn, ours)(X)
        close(lt.grad(made.sum(), [X])[0], torch.autograd.grad(getattr(torch.nn.functional, theirs)(tx).sum(), tx)[0])
        assert np.isnan(getattr(lt.nn, ours)(lt.Tensor(np.array([np.nan], np.float32))).numpy()).all()


@pytest.mark.parametrize("exponent, first, second", [(0, 0, None), (1, 1, None), (2, 0, 2), (3, 0, 0)])
def test_whole_powers_have_slopes_at_zero(exponent, first, second):
    x = lt.Tensor(np.zeros(3, np.float32))
    slope, = lt.grad((x ** exponent).sum(), [x])
    close(slope, np.full(3, first, np.float32))
    if second is None:  # the slope is a number
        with pytest.raises(lt.GradientError, match="does not depend"):
            lt.grad(slope.sum(), [x])
    else:
        close(lt.grad(slope.sum(), [x])[0], np.full(3, second, np.float32))
    exponents = lt.Tensor(np.full(3, exponent, np.float32)).to(*x.symbolic_shape)
    close(lt.grad((x ** exponents).sum(), [x])[0], np.full(3, first, np.float32))


def two_layers(x, y, w1, b1, w2):
    s = lt.SymbolGenerator()
    hidden = lt.nn.tanh(lt.nn.linear(x.to(s.n, s.i), w1.to(s.i, s.h), b1.to(s.h)))
    error = lt.nn.linear(hidden, w2.to(s.h, s.o)) - y.to(s.n, s.o)
    return (error * error).mean()


def test_a_network_is_trained():
    x, y = numbers(64, 3), np.tanh(numbers(64, 3) @ numbers(3, 2, seed=5))
    weights = [0.5 * numbers(3, 16, seed=6), np.zeros(16, np.float32), 0.5 * numbers(16, 2, seed=7)]
    inputs = [lt.Tensor(x), lt.Tensor(y)]
    parameters = [lt.Tensor(weight) for weight in weights]
    loss = two_layers(*inputs, *parameters)
    before = loss.item()
    gradients = lt.grad(loss, parameters)
    for _ in range(300):
        steps = [gradient.numpy() for gradient in gradients]
        for parameter, weight, step in zip(parameters, weights, steps):
            weight -= 0.2 * step
            parameter.set(weight)
    assert loss.item() < 0.1 * before


def test_a_gradient_is_scheduled_and_compiled():
    a, b, c = numbers(12, 20), numbers(20, 8, seed=1), numbers(12, 8, seed=2)
    A, B, C = (lt.Tensor(each) for each in (a, b, c))
    m, n, k = lt.symbols("m n k")
    gradient, = lt.grad(((A.to(m, k) * B.to(k, n)).sum(k) * C.to(m, n)).sum(), [A])
    close(gradient, c @ b.T, 1e-4)
    assert len(gradient.segments) == 1 and gradient.flops == 2 * a.size * 8
    first = gradient.loop_tree.loops[0]
    gradient.loop_tree = gradient.loop_tree.split(first, 4)
    gradient.force_recompute()
    close(gradient, c @ b.T, 1e-4)
    f = lt.compile(gradient, inputs=[B, C])
    np.testing.assert_allclose(f(2 * b, c), 2 * c @ b.T, rtol=1e-4, atol=1e-4)


def test_a_gradient_is_tuned():
    A, B = lt.rand(32, 48, seed=1), lt.rand(48, 16, seed=2)
    loss = product(A, B).exp().mean()
    gradient, = lt.grad(loss, [A])
    before = gradient.numpy(copy=True)
    tuned = gradient.tune(seconds=1)
    assert tuned.after is not None and tuned.evaluated > 0
    gradient.force_recompute()
    np.testing.assert_allclose(gradient.numpy(), before, rtol=1e-4)


def test_sizes_that_come_later():
    m, n = lt.symbols("m n")
    a, b = lt.Tensor(m), lt.Tensor(m, n)
    gradient, = lt.grad((a + b).mean(), [a])
    with pytest.raises(lt.SizeUnknown, match="m"):
        gradient.shape
    b.set(np.zeros((5, 4)))
    assert gradient.shape == [5]
    close(gradient, np.full(5, 0.2))


def test_what_it_refuses():
    a, b = lt.Tensor(numbers(3)), lt.Tensor(numbers(4))
    m, = lt.symbols("m")
    x = a.to(m)
    for wrong, words in [(lambda: lt.grad(x * x, [a]), r"has dims \[m\]: sum it, or give a seed"),
                         (lambda: lt.grad(x * x, [a], seed=b), "the seed has dims"),
                         (lambda: lt.grad(x.sum(), [b]), "does not depend on"),
                         (lambda: lt.grad(x.prod(), [a]), "multiply.*allow_division")]:
        with pytest.raises(lt.GradientError, match=words):
            wrong()
    assert issubclass(lt.GradientError, lt.TensorError)
    close(lt.grad(x.prod(), [a], allow_division=True)[0], a.numpy().prod() / a.numpy(), 1e-4)
    with pytest.raises(TypeError):
        lt.grad(x.sum(), a)
    with pytest.raises(TypeError):
        lt.grad(3.0, [a])
