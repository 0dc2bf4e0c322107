"""Sizes of tensors: what is known, what is told later, and what is wrong, each with its error."""

import os
import subprocess
import sys

import numpy as np
import pytest

import loopfleet.tensor as lt
from tensors import close, own_cache, product  # noqa: F401 (a fixture)


def sized(*names_and_sizes):
    """A leaf whose dims have the given symbols; size None: unknown."""
    leaf = lt.Tensor(*(symbol for symbol, _ in names_and_sizes))
    if all(size is not None for _, size in names_and_sizes):
        leaf.set_size(*(size for _, size in names_and_sizes))
    return leaf


def test_sizes_pass_backwards():
    m, n = lt.symbols("m n")
    a, b = lt.Tensor(m), lt.Tensor(m, n)
    c = a + b
    assert c.symbolic_shape == [m, n]
    b.set_size(128, 7)
    assert a.shape == [128] and c.shape == [128, 7]


S = lt.SymbolGenerator()


def view(x, *dims, **equations):
    return x.to(*dims, constraints=list(equations["by"]))


# What is right: (made, shape).
KNOWN = {
    "a leaf": (lambda: lt.Tensor(3, 4), [3, 4]),
    "rank 0": (lambda: lt.Tensor(), []),
    "a renamed leaf": (lambda: lt.Tensor(3, 4).to(S.a, S.b), [3, 4]),
    "one of two operands is unknown": (lambda: sized((S.a, None)) + sized((S.a, 3)), [3]),
    "the third tells the first": (lambda: sized((S.a, None)) + sized((S.a, None)) * sized((S.a, 5)), [5]),
    "a window": (lambda: lt.Tensor(10)[S.i + S.j] * lt.Tensor(3).to(S.j), [8, 3]),
    "a strided window": (lambda: lt.Tensor(10)[2 * S.i + S.j] * lt.Tensor(3).to(S.j), [4, 3]),
    "the longest that stays inside": (lambda: lt.Tensor(9)[4 * S.i], [3]),
    "an offset window": (lambda: lt.Tensor(10)[S.i + 4], [6]),
    "a shift without a size": (lambda: view(lt.Tensor(4).to(S.a), S.b, by=[(S.b, S.a + 1)]), [5]),
    "a stated size": (lambda: view(lt.Tensor(4).to(S.a), S.b, by=[(S.b, S.a + 1), (lt.Size(S.b), lt.Size(S.a) + 2)]), [6]),
    "a size that is a number": (lambda: view(lt.Tensor(4).to(S.a), S.b, S.c, by=[(S.a, S.b + S.c), (lt.Size(S.c), lt.Expr(3))]), [2, 3]),
    "half a size": (lambda: view(lt.Tensor(8).to(S.a), S.b, by=[(S.a, S.b), (lt.Size(S.b), lt.Size(S.a) // 2)]), [4]),
    "a pad": (lambda: lt.Tensor(4).to(S.a).pad(S.a, 1, 3), [8]),
    "a pad of what a later operand tells": (lambda: (sized((S.a, None)) + sized((S.a, 6))).pad(S.a, 2), [10]),
    "a concatenation": (lambda: lt.Tensor(4, 2).to(S.a, S.b) | lt.Tensor(4, 5).to(S.a, S.c), [4, 7]),
    "flattened": (lambda: lt.Tensor(3, 4, 5).to(S.a, S.b, S.c).flatten(S.b, S.c), [3, 20]),
    "unflattened": (lambda: lt.Tensor(12).to(S.a).unflatten(S.a, S.b, (S.c, 4)), [3, 4]),
    "unflattened by three": (lambda: lt.Tensor(24).to(S.a).unflatten(S.a, (S.b, 2), S.c, (S.d, 3)), [2, 4, 3]),
    "one symbol in unconnected places": (lambda: product(product(lt.Tensor(2, 3), lt.Tensor(3, 4)), lt.Tensor(4, 5)), [2, 5]),
    "a choice": (lambda: lt.where(sized((S.a, None)), sized((S.a, 3)), 0), [3]),
    "an index": (lambda: lt.Tensor(5, 6)[S.a, 2], [5]),
    "an index outside": (lambda: lt.Tensor(5, 6)[S.a, 99], [5]),
    "a spread": (lambda: view(lt.Tensor(4).to(S.a), S.b, by=[(S.b, 3 * S.a), (lt.Size(S.b), lt.Expr(10))]), [10]),
    "a repeated scalar": (lambda: view(lt.Tensor(1.0), S.a, by=[(S.a, lt.Expr(0))]) + sized((S.a, 4)), [4]),
}


@pytest.mark.parametrize("case", KNOWN)
def test_known_sizes(case):
    make, shape = KNOWN[case]
    assert make().shape == shape


# What is told by what is computed later: (unknown leaf, consumer, shape of the leaf).
LATER = {
    "a sum": (lambda x: x + sized((S.n, 9)), [9]),
    "a window": (lambda x: (x[S.i + S.j] * lt.Tensor(3).to(S.j)).sum(S.j).to(S.o) + sized((S.o, 8)), [10]),
    "a stride": (lambda x: (x[2 * S.i + S.j] * lt.Tensor(3).to(S.j)).sum(S.j).to(S.o) + sized((S.o, 4)), [9]),
    "a pad": (lambda x: x.pad(S.n, 2, 1).to(S.o) + sized((S.o, 8)), [5]),
    "a concatenation": (lambda x: (x | lt.Tensor(3).to(S.m)).to(S.o) + sized((S.o, 8)), [5]),
    "a flattening": (lambda x: (x * lt.Tensor(3).to(S.m)).flatten().to(S.o) + sized((S.o, 12)), [4]),
    "two steps": (lambda x: (-(-x)).exp().to(S.o) * sized((S.o, 7)), [7]),
    "an unflattening": (lambda x: x.unflatten(S.n, (S.a, 3), (S.b, 5)), [15]),
}


@pytest.mark.parametrize("case", LATER)
def test_sizes_told_by_consumers(case):
    make, shape = LATER[case]
    x = lt.Tensor(S.n)
    with pytest.raises(lt.SizeUnknown):
        x.shape
    kept = make(x)
    assert x.shape == shape
    assert kept.unify() is kept
    del kept
    with pytest.raises(lt.SizeUnknown, match="n"):
        x.shape


# What is wrong: (does it, error, words of the message).
WRONG = {
    "unknown leaf": (lambda: sized((S.a, None)).shape, lt.SizeUnknown, ["a", "Tensor(a)", "set_size"]),
    "unknown window": (lambda: lt.Tensor(10)[S.i + S.j].shape, lt.SizeUnknown, ["i", "j"]),
    "unknown new dim": (lambda: view(lt.Tensor(4).to(S.a), S.a, S.b, by=[(lt.Size(S.b), lt.Size(S.b))]).shape, lt.SizeUnknown, ["b"]),
    "unknown parts": (lambda: lt.Tensor(12).to(S.a).unflatten(S.a, S.b, S.c).shape, lt.SizeUnknown, ["b", "c"]),
    "unknown when computed": (lambda: (sized((S.a, None)) + 1).numpy(), lt.SizeUnknown, ["a"]),
    "unknown when unified": (lambda: (sized((S.a, None)) + 1).unify(), lt.SizeUnknown, ["a"]),
    "unknown schedule": (lambda: (sized((S.a, None)) + 1).tree_key, lt.SizeUnknown, ["a"]),
    "unknown number of elements": (lambda: lt.Tensor(S.a).size, lt.SizeUnknown, ["a"]),
    "unknown when reduced to a number": (lambda: (sized((S.a, None)) + 1).sum().item(), lt.SizeUnknown, ["a"]),
    "unknown code": (lambda: (sized((S.a, None)) + 1).code, lt.SizeUnknown, ["a"]),
    "unknown work": (lambda: (sized((S.a, None)) + 1).flops, lt.SizeUnknown, ["a"]),
    "unknown when compiled": (lambda: (lambda x: lt.compile(x + 1, inputs=[x]))(lt.Tensor(S.a)), lt.SizeUnknown, ["a"]),
    "unknown when filled": (lambda: lt.Tensor(S.a).set(3), lt.SizeUnknown, ["a"]),
    "unknown depth of keys": (lambda: lt.nn.attention(lt.Tensor(S.q, S.a), lt.Tensor(S.t, S.a), lt.Tensor(S.t, S.e), S.t, S.a), lt.SizeUnknown, ["a"]),
    "no values": (lambda: (sized((S.a, 3)) + 1).numpy(), lt.TensorError, ["Tensor(a)", "set"]),
    "conflicting operands": (lambda: (sized((S.a, 3)) + sized((S.a, 4))).shape, lt.SizeConflict, ["a", "3", "4"]),
    "conflicting operands computed": (lambda: (lt.Tensor(3).to(S.a) + lt.Tensor(4).to(S.a)).numpy(), lt.SizeConflict, ["3", "4"]),
    "conflicting choice": (lambda: lt.where(sized((S.a, 3)), sized((S.a, 4)), 0).shape, lt.SizeConflict, ["3", "4"]),
    "conflict through renames": (lambda: (sized((S.a, 3)).to(S.b) + sized((S.b, 5))).shape, lt.SizeConflict, ["3", "5"]),
    "conflict through a pad": (lambda: (sized((S.a, 3)).pad(S.a, 1).to(S.b) + sized((S.b, 6))).shape, lt.SizeConflict, ["5", "6"]),
    "conflict through a concatenation": (lambda: (sized((S.a, 3)) | sized((S.b, 4))).to(S.c).max(sized((S.c, 8))).shape, lt.SizeConflict, ["7", "8"]),
    "conflict when compiled": (lambda: lt.compile(sized((S.a, 3)) + sized((S.a, 4)), inputs=[]), lt.SizeConflict, ["3", "4"]),
    "conflict of a product": (lambda: product(lt.Tensor(3, 4), lt.Tensor(5, 6)).shape, lt.SizeConflict, ["4", "5", "k"]),
    "conflict through a reduction": (lambda: (lt.Tensor(3, 4).to(S.a, S.b).sum(S.b) + sized((S.a, 5))).shape, lt.SizeConflict, ["3", "5"]),
    "conflict through a transpose": (lambda: (lt.Tensor(3, 4).to(S.a, S.b).transpose(S.b, S.a) + sized((S.a, 5))).shape, lt.SizeConflict, ["3", "5"]),
    "conflict through a flattening": (lambda: (lt.Tensor(3, 4).flatten().to(S.c) + sized((S.c, 13))).shape, lt.SizeConflict, ["12", "13"]),
    "conflict of a bias": (lambda: lt.nn.linear(lt.Tensor(3, 4).to(S.a, S.b), lt.Tensor(4, 5).to(S.b, S.c), lt.Tensor(6).to(S.c)).shape, lt.SizeConflict, ["5", "6"]),
    "conflict of channels": (lambda: lt.nn.conv(lt.Tensor(3, 8).to(S.c, S.y), lt.Tensor(4, 2, 3).to(S.o, S.c, S.h), [S.y], [S.h]).shape, lt.SizeConflict, ["3", "2"]),
    "a kernel wider than the image": (lambda: lt.nn.conv(lt.Tensor(3, 2).to(S.c, S.y), lt.Tensor(4, 3, 3).to(S.o, S.c, S.h), [S.y], [S.h]).shape, lt.SizeConflict, ["y", "2"]),
    "a pool wider than the image": (lambda: lt.nn.pool(lt.Tensor(2).to(S.a), [S.a], [3]).shape, lt.SizeConflict, ["a", "2"]),
    "a window that does not fit": (lambda: (lt.Tensor(3)[S.i + S.j] * lt.Tensor(5).to(S.j)).shape, lt.SizeConflict, ["3"]),
    "parts that do not divide": (lambda: lt.Tensor(12).to(S.a).unflatten(S.a, S.b, (S.c, 5)).shape, lt.SizeConflict, ["12", "5"]),
    "parts that do not multiply": (lambda: lt.Tensor(12).to(S.a).unflatten(S.a, (S.b, 3), (S.c, 5)).shape, lt.SizeConflict, ["12", "15"]),
    "a stated size that is wrong": (lambda: (view(lt.Tensor(4).to(S.a), S.b, by=[(S.a, S.b), (lt.Size(S.b), lt.Expr(3))]) + sized((S.b, 4))).shape, lt.SizeConflict, ["3", "4"]),
    "a stated size that is not whole": (lambda: view(lt.Tensor(5).to(S.a), S.b, by=[(S.a, S.b), (lt.Size(S.b), lt.Size(S.a) // 2)]).shape, lt.SizeConflict, ["Size"]),
    "a stated size beyond 64 bits": (lambda: view(lt.Tensor(8).to(S.a), S.b, by=[(S.a, S.b), (lt.Size(S.b), (2**61 + 1) * lt.Size(S.a))]).shape, lt.SizeConflict, ["Size(a)", "2^63"]),
    "a stated size that has no negative": (lambda: view(lt.Tensor(8).to(S.a), S.b, by=[(S.a, S.b), (lt.Size(S.b), -(2**60) * lt.Size(S.a))]).shape, lt.SizeConflict, ["Size(a)", "2^63"]),
    "an index beyond 64 bits": (lambda: lt.Tensor(8).to(S.a)[S.b + 2**61 * lt.Size(S.a)].shape, lt.SizeConflict, ["Size(a)", "2^63"]),
    "a divided index beyond 64 bits": (lambda: view(lt.Tensor(8).to(S.a), S.b, by=[(S.a, (S.b + 2**61 * lt.Size(S.a)) // 2), (lt.Size(S.b), lt.Expr(3))]).numpy(), lt.SizeConflict, ["Size(a)", "2^63"]),
    "a negative size": (lambda: view(lt.Tensor(5).to(S.a), S.b, by=[(S.a, S.b), (lt.Size(S.b), lt.Size(S.a) - 9)]).shape, lt.ShapeError, ["-4"]),
    "set to another size": (lambda: lt.Tensor(3).set(np.zeros(4)), lt.SizeConflict, ["3", "4"]),
    "set after set_size": (lambda: sized((S.a, 3)).set(np.zeros(4)), lt.SizeConflict, ["3", "4"]),
    "set_size after set": (lambda: lt.Tensor(S.a).set(np.zeros(4)).set_size(3), lt.SizeConflict, ["3", "4"]),
    "set_size of another rank": (lambda: lt.Tensor(S.a).set_size(3, 4), lt.ShapeError, ["2", "1"]),
    "set of another rank": (lambda: lt.Tensor(S.a).set(np.zeros((3, 4))), lt.ShapeError, ["3, 4"]),
    "set_size of no leaf": (lambda: (lt.Tensor(3) + 1).set_size(3), lt.TensorError, ["add", "leaves"]),
    "set of no leaf": (lambda: (lt.Tensor(3) + 1).set(np.zeros(3)), lt.TensorError, ["add", "leaves"]),
    "set_size of 0": (lambda: lt.Tensor(S.a).set_size(0), lt.ShapeError, ["0"]),
    "more bytes than tensors may have": (lambda: (lt.Tensor(1 << 16) + lt.Tensor(1 << 16)).resolve(), lt.ShapeError, ["bytes"]),
    "size 0": (lambda: lt.Tensor(3, 0), lt.ShapeError, ["3, 0"]),
    "a negative size given": (lambda: lt.Tensor(-1), lt.ShapeError, ["-1"]),
    "an empty array": (lambda: lt.Tensor(np.zeros((0, 3))), lt.ShapeError, ["0, 3"]),
    "too many elements": (lambda: lt.Tensor(S.a, S.b).set_size(2**40, 2**40), lt.ShapeError, ["elements"]),
    "one symbol twice": (lambda: lt.Tensor(S.a, S.a), lt.ShapeError, ["a"]),
    "renamed to one symbol twice": (lambda: lt.Tensor(3, 4).to(S.a, S.a), lt.ShapeError, ["a"]),
    "too few names": (lambda: lt.Tensor(3, 4).to(S.a), lt.ShapeError, ["1", "2"]),
    "too many names": (lambda: lt.Tensor(3).to(S.a, S.b), lt.ShapeError, ["2", "1"]),
    "a sum over what it lacks": (lambda: lt.Tensor(3).to(S.a).sum(S.b), lt.ShapeError, ["b", "[a]"]),
    "a sum over a namesake": (lambda: lt.Tensor(3).to(S.a).sum(lt.Symbol("a")), lt.ShapeError, ["another"]),
    "a mean over what it lacks": (lambda: lt.Tensor(3).to(S.a).mean(S.b), lt.ShapeError, ["b"]),
    "a pad of what it lacks": (lambda: lt.Tensor(3).to(S.a).pad(S.b, 1), lt.ShapeError, ["b"]),
    "a negative pad": (lambda: lt.Tensor(3).to(S.a).pad(S.a, -1), lt.ShapeError, ["-1"]),
    "no permutation": (lambda: lt.Tensor(3, 4).to(S.a, S.b).transpose(S.a), lt.ShapeError, ["transpose"]),
    "a permutation of others": (lambda: lt.Tensor(3, 4).to(S.a, S.b).transpose(S.a, S.c), lt.ShapeError, ["transpose"]),
    "no neighbours": (lambda: lt.Tensor(3, 4, 5).to(S.a, S.b, S.c).flatten(S.a, S.c), lt.ShapeError, ["neighbours"]),
    "neighbours in another order": (lambda: lt.Tensor(3, 4).to(S.a, S.b).flatten(S.b, S.a), lt.ShapeError, ["neighbours"]),
    "concatenated along two dims": (lambda: lt.Tensor(3, 4).to(S.a, S.b) | lt.Tensor(3, 4).to(S.c, S.d), lt.ShapeError, ["one dim"]),
    "concatenated along none": (lambda: lt.Tensor(3).to(S.a) | lt.Tensor(3).to(S.a), lt.ShapeError, ["one dim"]),
    "too few indices": (lambda: lt.Tensor(3, 4)[S.a], lt.ShapeError, ["1", "2"]),
    "a product of symbols": (lambda: lt.Tensor(3)[S.a * S.b], lt.ViewError, ["a", "b", "product"]),
    "a quotient scaled": (lambda: lt.Tensor(3)[(S.a // 2) * 3], lt.ViewError, ["quotient"]),
    "quotients added": (lambda: lt.Tensor(4)[S.a // 2 + S.b // 2], lt.ViewError, ["quotients"]),
    "quotients of sizes added": (lambda: view(lt.Tensor(3, 5).to(S.a, S.b), S.c, by=[(S.a, S.c), (S.b, S.c), (lt.Size(S.c), lt.Size(S.a) // 2 + lt.Size(S.b) // 2)]), lt.ViewError, ["quotients"]),
    "divided by 0": (lambda: lt.Tensor(3)[S.a // 0], lt.ViewError, ["0"]),
    "no equation for a dim": (lambda: view(lt.Tensor(3, 4).to(S.a, S.b), S.a, S.c, by=[(lt.Size(S.c), lt.Expr(3))]), lt.ViewError, ["b"]),
    "two equations for a dim": (lambda: view(lt.Tensor(3).to(S.a), S.b, by=[(S.a, S.b), (S.a, S.b + 1)]), lt.ViewError, ["twice"]),
    "two dims in an equation": (lambda: view(lt.Tensor(3, 4).to(S.a, S.b), S.c, by=[(S.a + S.b, S.c)]), lt.ViewError, ["a", "b"]),
    "a stranger in an equation": (lambda: view(lt.Tensor(3).to(S.a), S.b, by=[(S.a, S.b + S.z)]), lt.ViewError, ["z"]),
    "an equation of nothing": (lambda: view(lt.Tensor(3).to(S.a), S.a, S.b, by=[(S.b, lt.Expr(1))]), lt.ViewError, ["b"]),
    "a size of an index": (lambda: view(lt.Tensor(3).to(S.a), S.b, by=[(S.a, S.b), (lt.Size(S.b), S.a + 1)]), lt.ViewError, ["index"]),
    "a size of a stranger": (lambda: view(lt.Tensor(3).to(S.a), S.b, by=[(S.a, S.b), (lt.Size(S.z), lt.Expr(1))]), lt.ViewError, ["z"]),
    "a size of a stranger in an index": (lambda: lt.Tensor(3)[S.a + lt.Size(S.z)], lt.ViewError, ["z"]),
    "complex numbers": (lambda: lt.Tensor(np.zeros(3, complex)), lt.DTypeError, ["complex"]),
    "text": (lambda: lt.Tensor(np.array(["a"])), lt.DTypeError, ["U"]),
    "no array": (lambda: lt.Tensor(object()), lt.DTypeError, ["object"]),
    "float64 shared": (lambda: lt.Tensor(np.zeros(3), copy=False), lt.DTypeError, ["float32"]),
    "strides shared": (lambda: lt.Tensor(np.zeros((3, 4), np.float32).T, copy=False), lt.TensorError, ["dense"]),
    "item of many": (lambda: lt.Tensor(3).item(), lt.ShapeError, ["3"]),
    "a leaf's schedule": (lambda: lt.Tensor(3).tree_key, lt.TensorError, ["schedule"]),
    "truth": (lambda: bool(lt.Tensor(3)), TypeError, ["true"]),
    "length of rank 0": (lambda: len(lt.Tensor()), TypeError, ["rank 0"]),
    "iteration": (lambda: list(lt.Tensor(3)), TypeError, ["iterated"]),
    "a slice": (lambda: lt.Tensor(3)[1:2], TypeError, ["slice"]),
    "a name that is text": (lambda: lt.Tensor(3).to("a"), TypeError, ["str"]),
    "an array in arithmetic": (lambda: lt.Tensor(3).max(np.zeros(3)), TypeError, ["ndarray"]),
    "an array on the right": (lambda: lt.Tensor(3) * np.zeros(3, np.float32), TypeError, ["Tensor"]),
    "an array on the left": (lambda: np.zeros(3, np.float32) * lt.Tensor(3), TypeError, ["Tensor"]),
    "random numbers of a negative size": (lambda: lt.rand(3, -1), lt.ShapeError, ["3, -1"]),
    "no array by dlpack": (lambda: lt.from_dlpack(3), lt.DTypeError, ["int", "__dlpack__"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_has_its_error(case):
    do, error, words = WRONG[case]
    with pytest.raises(error) as raised:
        do()
    assert type(raised.value) is error, raised.value
    for word in words:
        assert word in str(raised.value), raised.value


def test_values_follow_sizes_told_by_consumers():
    x = np.arange(20, dtype=np.float32)
    windows = np.lib.stride_tricks.sliding_window_view
    w = lt.Tensor(S.k).set(np.ones(3))
    v = lt.Tensor(x)[S.i + S.k]
    kept, total = (v * w).sum(S.k), v.sum()
    close(v, windows(x, 3))
    assert total.item() == windows(x, 3).sum()
    computed = v.numpy()
    assert np.shares_memory(v.numpy(), computed), "computed once"
    w.set(np.ones(12))
    assert v.shape == [9, 12]
    copy, given = lt.Tensor(v), lt.Tensor(S.a, S.b).set(v)
    compiled = lt.compile(given + 1, inputs=[given])
    w.set(np.ones(3))
    w.set(np.ones(12))
    for made in (v, copy, given, lt.Tensor(v)):
        close(made, windows(x, 12))
        close(made + 1, windows(x, 12) + 1)
    assert total.item() == windows(x, 12).sum()
    np.testing.assert_array_equal(compiled(v), windows(x, 12) + 1)
    close(kept, windows(x, 12).sum(1))
    w.set(np.ones(5))
    with pytest.raises(lt.ShapeError, match="argument 0 has shape \\[16, 5\\]"):
        compiled(v)
    del kept
    with pytest.raises(lt.SizeUnknown):
        v.numpy()


def test_there_are_at_least_60_cases_of_sizes():
    wrong = [case for case, (_, error, _) in WRONG.items() if error in (lt.SizeUnknown, lt.SizeConflict, lt.ShapeError)]
    assert len(wrong) >= 60


def test_errors_tell_where_a_tensor_was_made_if_asked(tmp_path):
    script = tmp_path / "made.py"
    script.write_text("import loopfleet.tensor as lt\na, = lt.symbols('a')\nx = lt.Tensor(a)\n"
                      "try:\n    x.shape\nexcept lt.SizeUnknown as error:\n    print(error)\n"
                      "y = lt.Tensor(3).to(a)\nz = lt.Tensor(a).set_size(4)\n"
                      "try:\n    (y + z).shape\nexcept lt.SizeConflict as error:\n    print(error)\n")
    said = subprocess.run([sys.executable, str(script)], env=os.environ | {"LOOPFLEET_TRACE": "1"}, capture_output=True,
                          text=True, check=True).stdout.splitlines()
    assert "made.py:3" in said[0] and "made.py:8" in said[1] and "made.py:9" in said[1]
