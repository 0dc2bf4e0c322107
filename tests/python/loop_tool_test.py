"""loopfleet.loop_tool: what the article, the README and the tests of loop_tool do, under its names, with NumPy as the
reference. Code written for it finds it as `loop_tool` and `loop_tool_py`."""

import math
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

import loopfleet
import loopfleet.loop_tool as lt


@pytest.fixture(autouse=True)
def seeded(tmp_path, monkeypatch):
    np.random.seed(1337)
    random.seed(1337)
    monkeypatch.setitem(sys.modules, "loop_tool", lt)
    monkeypatch.setitem(sys.modules, "loop_tool_py", lt)


def close(tensor, expected, tolerance=1e-3):
    values = tensor.numpy()
    assert values.shape == np.shape(expected)
    assert np.allclose(values, expected, rtol=tolerance, atol=tolerance)


# ---- article, README, tutorial ------------------------------------------------------------------------------------

def test_the_articles_tensors():
    m, n, k = lt.symbols("m n k")
    a, b = lt.Tensor(m), lt.Tensor(m, n)
    c = a + b
    assert c.symbolic_shape == [m, n] and repr(c.symbolic_shape) == "[Symbol{m}, Symbol{n}]"
    b.set_size(128, 7)
    assert a.shape == [128]  # backwards, and without unify()


def test_the_articles_product():
    m, n, k = lt.symbols("m n k")
    a_np, b_np = np.random.randn(200, 300), np.random.randn(300, 400)
    a, b = lt.Tensor(a_np), lt.Tensor(b_np)
    c = (a.to(m, k) * b.to(k, n)).sum(k)
    assert np.allclose(c.numpy(), a_np @ b_np, rtol=1e-3, atol=1e-3)
    dot = str(c.ir)
    assert "{multiply : [m, k, n]|{m:200|k:300|n:400}}" in dot
    if shutil.which("dot"):
        drawn = subprocess.run(["dot", "-Tsvg"], input=dot, capture_output=True, text=True)
        assert drawn.returncode == 0 and "<svg" in drawn.stdout and "multiply" in drawn.stdout, drawn.stderr


def test_the_articles_sum_of_positive_products_in_a_file(tmp_path):
    m, n, k = lt.symbols("m n k")
    a_np, b_np = np.random.randn(33, 64), np.random.randn(64, 48)
    c = (lt.Tensor(a_np).to(m, k) * lt.Tensor(b_np).to(k, n)).max(0).sum(k)
    tree = c.loop_tree.split("m", 8)
    c.set(tree)
    assert "for m in 4 r 1" in str(c.loop_tree)
    (tmp_path / "woo.c").write_text(c.code)
    assert np.allclose(c.numpy(), np.maximum(a_np[:, :, None] * b_np[None], 0).sum(1), rtol=1e-3, atol=1e-3)


def test_the_readmes_sums():
    x_np = np.random.randn(128)
    X = lt.Tensor(128).set(x_np)
    N, K = lt.Symbol("N"), lt.Symbol("K")
    Y = X.to(N).sum(N)
    assert np.allclose(Y.numpy(), x_np.sum(), atol=1e-3)
    Z = lt.Tensor(K)
    W = (Z.to(N) * X.to(N)).sum(N)
    W.unify()
    assert Z.shape[0] == 128
    Z.set(np.random.randn(Z.shape[0]))
    assert np.allclose(W.numpy(), np.sum(X.numpy() * Z.numpy()), atol=1e-3)

    ir = W.ir
    v = ir.vars[0]
    for node in ir.nodes:
        ir.set_order(node, [(v, (8, 0)), (v, (16, 0))] if v in ir.loop_vars(node) else [])
        if "multiply" in ir.dump(node):
            ir.disable_reuse(node, 1)
    W.set(ir)
    assert str(W.loop_tree).count("for N' in 16") == 2
    new_X, new_Z = lt.Tensor(128).set(np.random.randn(128)), lt.Tensor(K)
    new_W = (new_Z.to(N) * new_X.to(N)).sum(N)
    new_W.unify()
    new_Z.set(np.random.randn(128))
    assert str(new_W.loop_tree) == str(W.loop_tree)
    assert np.allclose(new_W.numpy(), np.sum(new_X.numpy() * new_Z.numpy()), atol=1e-3)


def test_the_tutorials_sums():
    a, b = np.random.randn(128), np.random.randn(128)
    A, B = lt.Tensor(128).set(a), lt.Tensor(128).set(b)
    close(A + B, a[:, None] + b[None])
    N = lt.Symbol("N")
    close(A.to(N) + B.to(N), a + b)


# ---- the original's tests -----------------------------------------------------------------------------------------

def mm(A, B):
    s = lt.SymbolGenerator()
    return (A.to(s.m, s.k) * B.to(s.k, s.n)).sum(s.k)


def test_lazy_mm():
    a, b = np.random.randn(8, 8), np.random.randn(8, 8)
    A, B = lt.Tensor(8, 8), lt.Tensor(8, 8)
    A.set(a)
    B.set(b)
    close(mm(A, B), a @ b)


def conv_1d(X, W):
    with lt.SymbolGenerator() as s:
        return (X[s.No + s.K] * W.to(s.K)).sum(s.K)


def test_lazy_infer_unbound():
    x, w = np.random.randn(128), np.random.randn(3)
    close(conv_1d(lt.Tensor(128).set(x), lt.Tensor(3).set(w)), np.correlate(x, w, "valid"))
    N, K = lt.symbols("N K")
    X, W0, W1 = lt.Tensor(N), lt.Tensor(3), lt.Tensor(8)
    Z = (conv_1d(X, W0).to(K) * W1.to(K)).sum(K)
    Z.unify()
    assert X.shape[0] == 10
    Z.compile()
    Z.set(Z.ir)
    W0.set(np.ones(3))
    W1.set(np.ones(8))
    X.set(np.ones(10))
    assert Z.numpy() == 24


def test_lazy_pointwise_add():
    length = 1024 * 128
    x, y = np.random.randn(length), np.random.randn(length)
    X, Y, N = lt.Tensor(length).set(x), lt.Tensor(length).set(y), lt.Symbol("N")
    Z = X.to(N) + Y.to(N)
    close(Z, x + y)
    tree = Z.loop_tree
    ir = tree.ir
    for ref in tree.loops:
        if tree.trivially_parallel(ref):
            loop = tree.loop(ref)
            assert loop.tail == 0
            half = length // 2
            for node in ir.nodes:
                ir.set_order(node, [(loop.var, (loop.size // half, loop.size % half)), (loop.var, (half, 0))])
    split = lt.LoopTree(ir)
    Z.set(split.annotate(split.loops[0], "parallel"))
    close(X.to(N) + Y.to(N), x + y)
    Z.set(tree)


def test_ops():
    a = np.random.randn(128)
    A = lt.Tensor(a)
    close(A.exp(), np.exp(a))
    close(lt.Tensor().set(1) + A, 1 + a)
    close(lt.nn.sigmoid(A), 1 / (1 + np.exp(-a)))
    close(lt.nn.relu(A), np.maximum(a, 0))
    close(lt.nn.tanh(A), np.tanh(a))
    b = np.random.randn(32, 32)
    B = lt.Tensor(b)
    close(lt.nn.mean(B, [B.symbolic_shape[0]]), b.mean(0))


def test_ops_linear():
    x, w, bias = np.random.randn(123, 128), np.random.randn(128, 231), np.random.randn(231)
    s = lt.SymbolGenerator()
    made = lt.nn.linear(lt.Tensor(s.M, s.K).set(x), lt.Tensor(s.K, s.N).set(w), lt.Tensor(s.N).set(bias))
    close(made, x @ w + bias, 1e-2)


def test_ops_conv():
    x, w = np.random.randn(5, 16, 14, 14), np.random.randn(8, 16, 3, 3)
    s = lt.SymbolGenerator()
    Y = lt.nn.conv(lt.Tensor(s.b, s.ic, s.y, s.x).set(x), lt.Tensor(s.oc, s.ic, s.wy, s.wx).set(w), [s.y, s.x], [s.wy, s.wx])
    b, y, x_, c = Y.symbolic_shape
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    close(Y.transpose(b, c, y, x_), np.einsum("bcyxij,ocij->boyx", windows, w), 1e-2)


def test_ops_pad():
    a = np.random.randn(1, 1, 4, 5)
    A = lt.Tensor(a)
    _, _, m, n = A.symbolic_shape
    close(lt.nn.pad(A, (m, (2, 3)), (n, (2, 3))), np.pad(a, ((0, 0), (0, 0), (2, 3), (2, 3))))
    X = lt.Tensor(lt.Symbol("Y"), lt.Symbol("X")).set(np.ones((1, 1)))
    X = lt.nn.pad(X, (X.symbolic_shape[1], 1))
    X = lt.nn.pad(X, (X.symbolic_shape[0], 1))
    X = lt.nn.pad(X, (X.symbolic_shape[0], 1))
    assert X.shape == [5, 3] and str(X.loop_tree) and X.numpy().sum() == 1


def test_ops_padded_1d_conv():
    x, w = np.random.randn(4, 20), np.random.randn(4, 3)
    X, W = lt.Tensor(4, 20).set(x), lt.Tensor(4, 3).set(w)
    s = lt.SymbolGenerator()
    X = X.pad(X.symbolic_shape[1], 1)
    Y = (X[s.B, s.No + s.K] * W.to(s.B, s.K)).sum(s.K)
    close(Y, [np.correlate(np.pad(row, 1), weight, "valid") for row, weight in zip(x, w)])


def test_views():
    a, b = np.random.randn(128, 16), np.random.randn(128, 5)
    A, B = lt.Tensor(128, 16).set(a), lt.Tensor(128, 5).set(b)
    close(A.pad(A.symbolic_shape[1], 3), np.pad(a, [(0,), (3,)]))
    with lt.SymbolGenerator() as s:
        close(A.to(s.m, s.n) | B.to(s.m, s.k), np.concatenate((a, b), 1))


@pytest.mark.parametrize("padding", [0, 1])
def test_views_2d_conv(padding):
    x, w = np.random.randn(6, 8, 8), np.random.randn(7, 6, 3, 3)
    s = lt.SymbolGenerator()
    X = lt.Tensor(6, 8, 8).set(x).to(s.c, s.h, s.w)
    if padding:
        X = X.pad(s.h, 1).pad(s.w, 1)
    X = X[s.C, s.H + s.Kh, s.W + s.Kw]
    W = lt.Tensor(7, 6, 3, 3).set(w).to(s.Co, s.C, s.Kh, s.Kw)
    padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    close((X * W).sum(s.C, s.Kh, s.Kw).transpose(s.Co, s.H, s.W), np.einsum("chwij,ocij->ohw", windows, w))


def test_views_many_pads():
    a = np.random.randn(5)
    b = lt.Tensor(lt.Symbol("A")).set(a)
    for i in range(11):
        X, Y = b.symbolic_shape[0], lt.Symbol(chr(ord("B") + i))
        b = b.to(Y, constraints=[(Y, X + lt.Expr(1)), (lt.Size(Y), lt.Size(X) + lt.Expr(2))])
    ir = b.ir
    writes = [node for node in ir.nodes if "write" in ir.dump(node)]
    assert len(writes) == 1
    ir.set_order(writes[0], [(ir.vars[0], (5, 0))])  # wrong, but only a copy
    assert str(b.loop_tree) and b.code
    close(b, np.pad(a, 11))


def test_views_many_convs():
    a = lt.Tensor(lt.Symbol("A")).set(np.ones(11))
    X, Y, Z = a.symbolic_shape[0], lt.Symbol("B"), lt.Symbol("C")
    symbols = [Y, Z]
    b = a.to(*symbols, constraints=[(X, Y + Z), (lt.Size(Z), lt.Expr(3))])
    for i in range(2):
        X, Y, Z = b.symbolic_shape[0], lt.Symbol(f"Y{i}"), lt.Symbol(f"Z{i}")
        symbols = [Y, Z] + symbols[1:]
        b = b.to(*symbols, constraints=[(X, Y + Z), (lt.Size(Z), lt.Expr(3))])
    assert b.shape == [5, 3, 3, 3] and b.numpy().sum() == 135


def total_of(splits):
    running = 1
    for size, tail in splits[::-1]:
        running = size * running + tail
    return running


def random_splits(size):
    """[(size, tail), ...] that cover `size`, outermost first."""
    splits = [(size, 0)]
    for _ in range(random.randint(1, 3)):
        place = random.randrange(len(splits))
        largest = math.isqrt(splits[place][0])
        if largest < 2:
            continue
        inner = total_of(splits[place + 1:])
        part = random.randint(2, largest)
        whole = splits[place][0] * inner + splits[place][1]
        splits[place:place + 1] = [(whole // (part * inner), whole % (part * inner)), (part, 0)]
    assert total_of(splits) == size
    return splits


def scheduled(ir, sizes):
    for node in ir.nodes:
        ir.set_order(node, [(var, split) for var in ir.all_vars(node) for split in random_splits(sizes[var])])
    return lt.LoopTree(ir)


def check(tree, tensors, expected):
    assert all(isinstance(ref, int) for ref in [*tree.roots, *tree.loops, *tree.leaves()])
    parallel = {ref for ref in tree.loops if tree.trivially_parallel(ref)}
    assert tree.dump(lambda ref: "[thread]" if ref in parallel else "").count("[thread]") == len(parallel)
    for function in (lt.cpu(tree), tree):
        tensors[-1].set(1337.0)
        function(tensors)
        difference = np.abs(tensors[-1].to_numpy().reshape(-1) - np.reshape(expected, -1)).max()
        assert difference < 1e-3 * max(np.abs(expected).mean(), 1), str(tree)


SIZES = [1, 2, 7, 16, 64, 65, 128, 129]


@pytest.mark.parametrize("size", SIZES)
def test_random_schedules_of_pointwise_additions(size):
    for make in (lt.RawTensor, lt.Tensor):
        ir = lt.IR()
        a = ir.create_var("a")
        reads = [ir.create_node("read", [], [a]), ir.create_node(lt.read, [], [a])]
        add = ir.create_node(lt.add, reads, [a])
        write = ir.create_node("write", [add], [a])
        ir.set_inputs(reads)
        ir.set_outputs([write])
        x, y = np.random.randn(size), np.random.randn(size)
        tensors = [make(size), make(size), make(size)]
        tensors[0].set(x)
        tensors[1].set(y)
        check(scheduled(ir, {a: size}), tensors, x + y)


@pytest.mark.parametrize("size", SIZES)
def test_random_schedules_of_sums(size):
    ir = lt.IR()
    n = ir.create_var("N")
    read = ir.create_node("read", [], [n])
    add = ir.create_node("add", [read], [])
    write = ir.create_node("write", [add], [])
    ir.set_inputs([read])
    ir.set_outputs([write])
    x = np.random.randn(size)
    tensors = [lt.RawTensor(size), lt.RawTensor(1)]
    tensors[0].set(x)
    check(scheduled(ir, {n: size}), tensors, x.sum())


@pytest.mark.parametrize("rows", range(1, 17, 3))
def test_random_schedules_of_products(rows):
    for columns, depth in [(5, 8), (6, 9), (5, 10)]:
        ir = lt.IR()
        m, n, k = (ir.create_var(name) for name in "mnk")
        reads = [ir.create_node("read", [], [m, k]), ir.create_node("read", [], [k, n])]
        product = ir.create_node("mul", reads, [m, n, k])
        add = ir.create_node("add", [product], [m, n])
        write = ir.create_node("write", [add], [m, n])
        ir.set_inputs(reads)
        ir.set_outputs([write])
        x, y = np.arange(rows * depth).reshape(rows, depth), np.arange(depth * columns).reshape(depth, columns)
        tensors = [lt.RawTensor(size).set(0) for size in (x.size, y.size, rows * columns)]
        tensors[0].set(x)
        tensors[1].set(y)
        check(scheduled(ir, {m: rows, n: columns, k: depth}), tensors, x @ y)


def test_what_only_the_facade_has():
    c = mm(lt.rand(8, 9), lt.rand(9, 10))
    assert "cpu" in lt.backends()
    with lt.Backend("loop_nest") as backend:
        assert backend.backend == "loop_nest" and lt.get_default_backend() == "cpu"
        assert c.numpy().shape == (8, 10)
    lt.set_default_hardware("cpu")
    with pytest.raises(lt.TensorError, match="cuda"):
        lt.set_default_hardware("cuda")
    for wrong in (lambda: lt.set_default_backend("cuda"), lambda: lt.RawTensor(3, "cuda"), lambda: c.loop_tree.split(0, 0),
                  lambda: c.set([1]), lambda: c.to(lt.Symbol("i"))):
        with pytest.raises(RuntimeError):  # as the wheel raises
            wrong()
    tree = c.loop_tree
    allocations = lt.Compiler(tree).allocations
    assert {tree.ir_node(leaf) for leaf in tree.leaves()} == set(allocations)
    assert all(allocation.size >= 1 for allocation in allocations.values())
    assert lt.split(tree, tree.loops[0], 4) == tree.split(tree.loops[0], 4)
    assert lt.LoopTree(lt.deserialize(c.ir.serialize())) == tree
    assert int(lt.Operation.multiply) == 7 and lt.mul is lt.Operation.multiply
    assert "loopfleet_kernel" in c.compiled.code and "loopfleet_kernel" in lt.cpu(tree).code
    raw = lt.RawTensor(10)
    raw.randn()
    assert raw.numel() == 10 and raw.dump().startswith("numel: 10, [")
    with pytest.raises(lt.ShapeError, match="3 values"):
        raw.set([1, 2, 3])
    with pytest.raises(TypeError, match="2 inputs"):
        lt.cpu(tree)([raw])
    with pytest.raises(lt.ShapeError, match="72"):
        lt.cpu(tree)([raw, raw, raw])


# ---- its names, as the wheel 0.1.0 lists them -----------------------------------------------------------------------

NAMES = {
    "": "Backend Compiled Compiler CompilerAllocation Expr IR Loop LoopTree Operation RawTensor Size Symbol SymbolGenerator "
        "Tensor backends cpp cpu_interpreted deserialize get_default_backend load_lib nn set_default_backend "
        "set_default_hardware symbols ui constant write read view copy add subtract multiply divide min max log exp sqrt abs "
        "negate reciprocal name",
    "Compiled": "__call__", "Compiler": "__init__", "Expr": "__add__ __mul__ __repr__",
    "IR": "create_node create_var disable_reuse dump dump_var enable_reuse inputs loop_vars nodes op orders output_vars "
          "outputs pointwise_vars priorities serialize set_inputs set_order set_outputs set_priority vars",
    "Loop": "size tail var __eq__ __hash__",
    "LoopTree": "__call__ annotate children copy_input decrease_reuse delete_copy disable_reuse dump enable_reuse flops "
                "increase_reuse ir ir_node is_loop leaves loop loops map_ref merge next_ref parent previous_ref remove_loop "
                "roots split swap_loops swap_nodes swap_vars trivially_parallel try_swap walk",
    "RawTensor": "dump numel randn set to_numpy", "Symbol": "name __add__ __mul__ __eq__ __hash__",
    "SymbolGenerator": "__enter__ __exit__ __getattr__",
    "Tensor": "__add__ __getitem__ __mul__ __or__ __sub__ __truediv__ __neg__ clear_cache code compile compiled exp flatten "
              "force_recompute ir loop_tree max max_reduce numpy pad reciprocal resolve set set_size shape sqrt sum "
              "symbolic_shape to transpose unify",
    "nn": "fill mean sigmoid swish relu relu6 hardswish tanh linear pad conv batch_norm"}


@pytest.mark.parametrize("owner", NAMES)
def test_each_name_is_there(owner):
    missing = [name for name in NAMES[owner].split() if not hasattr(getattr(lt, owner) if owner else lt, name)]
    assert missing == []


def view_tree(size, length, constraints, others=()):
    """A read of `size` elements, a view of them, and a write. `constraints`: of the symbols of the input and the view."""
    ir = lt.IR()
    x, y = ir.create_var("x"), ir.create_var("y")
    rest = [ir.create_var(f"z{place}") for place, _ in enumerate(others)]
    symbols = lt.symbols(" ".join(["X", "Y", *(f"Z{place}" for place, _ in enumerate(others))]))
    read = ir.create_node(lt.read, [], [x])
    view = ir.create_node(lt.view, [read], [y, *rest], constraints(*symbols), dict(zip(symbols, [x, y, *rest])))
    write = ir.create_node(lt.write, [view], [y, *rest])
    ir.set_inputs([read])
    ir.set_outputs([write])
    ir.set_order(read, [(x, (size, 0))])
    for node in (view, write):
        ir.set_order(node, [(y, (length, 0)), *((var, (other, 0)) for var, other in zip(rest, others))])
    return lt.LoopTree(ir)


def called(tree, values, size):
    results = []
    for function in (lt.cpp(tree), lt.cpu_interpreted(tree), lt.cpu(tree), tree):
        out = lt.RawTensor(size).set(1337.0)
        function([lt.RawTensor(len(values)).set(values), out])
        results.append(out.to_numpy())
    assert all(np.array_equal(result, results[0]) for result in results)
    return results[0]


def test_a_view_of_an_ir_by_equations():
    values = np.arange(1, 9)
    padded = view_tree(8, 10, lambda X, Y: [(Y, X + lt.Expr(1)), (lt.Size(Y), lt.Size(X) + lt.Expr(2))])
    assert np.array_equal(called(padded, values, 10), np.pad(values, 1))
    cut = view_tree(8, 6, lambda X, Y: [(X + lt.Expr(0), Y + lt.Expr(2))])
    assert np.array_equal(called(cut, values, 6), values[2:])
    strided = view_tree(8, 4, lambda X, Y: [(X, Y * lt.Expr(2) + lt.Expr(1))])
    assert np.array_equal(called(strided, values, 4), values[1::2])
    windows = view_tree(8, 6, lambda X, Y, Z: [(X, Y + Z), (lt.Size(Z), lt.Expr(3))], others=[3])
    assert np.array_equal(called(windows, values, 18).reshape(6, 3), np.lib.stride_tricks.sliding_window_view(values, 3))


def test_symbols_of_a_view_may_be_named_by_their_hash():
    ir = lt.IR()
    x, y = ir.create_var("x", 8), ir.create_var("y")
    X, Y = lt.symbols("X Y")
    read = ir.create_node("read", [], [x])
    view = ir.create_node("view", [read], [y], constraints=[(Y, lt.Size(X) - 1 - X), (lt.Size(Y), lt.Size(X))],
                          sym_var_map={hash(X): x, hash(Y): y})
    write = ir.create_node("write", [view], [y])
    ir.set_inputs([read])
    ir.set_outputs([write])
    for node in (view, write):
        ir.set_order(node, [(y, (8, 0))])
    assert np.array_equal(called(lt.LoopTree(ir), np.arange(8), 8), np.arange(8)[::-1])


def test_a_view_of_an_ir_that_cannot_be_says_why():
    ir = lt.IR()
    x, y = ir.create_var("x", 8), ir.create_var("y", 4)
    X, Y = lt.symbols("X Y")
    both = {X: x, Y: y}
    read = ir.create_node("read", [], [x])
    nodes = list(ir.nodes)
    for error, said, op, constraints, symbols in [
            (lt.ScheduleError, "symbol Y stands for no var", "view", [(X, Y)], {X: x}),
            (lt.ScheduleError, "there is no var 7", "view", [(X, Y)], {X: x, Y: 7}),
            (lt.ScheduleError, "two symbols, X and Y, stand for var 0", "view", [(X, Y)], {X: x, Y: x}),
            (lt.ScheduleError, "y has 4 elements, not 10", "view", [(Y, X + 1), (lt.Size(Y), lt.Size(X) + 2)], both),
            (lt.ScheduleError, "y cannot have -1 elements", "view", [(Y, X), (lt.Size(Y), lt.Expr(-1))], both),
            (lt.ScheduleError, r"Size\(Y\) = \(Size\(X\) \+ 1\) // 2 has no whole solution", "view",
             [(Y, X), (lt.Size(Y), (lt.Size(X) + 1) // 2)], both),
            (lt.ScheduleError, "more than 2\\^63", "view", [(Y, X), (lt.Size(Y), (1 << 62) * lt.Size(X))], both),
            (lt.ScheduleError, "only a view of one node has constraints, no add", "add", [(X, Y)], both),
            (lt.ViewError, "product of symbols", "view", [(X, Y * Y)], both),
            (lt.ViewError, "no equation gives the index along x", "view", [], both),
            (TypeError, "a pair of expressions", "view", [(X, Y, X)], both),
            (TypeError, "a Symbol, an Expr or a whole number", "view", [(X, "y")], both)]:
        with pytest.raises(error, match=said):
            ir.create_node(op, [read], [y], constraints, symbols)
    assert ir.nodes == nodes


def test_vars_are_swapped_in_memory():
    a, b = np.random.randn(3, 4), np.random.randn(4, 5)
    tree = mm(lt.Tensor(a), lt.Tensor(b)).loop_tree
    inner, outer = tree.swap_vars(2, 0, 2), tree.swap_vars(4, "m", "n")
    assert "%2[n, k, m] <- multiply" in str(inner) and "%4[n, m] <- write" in str(outer)
    assert lt.swap_vars(outer, "%4", "n", "m") == tree
    for swapped, expected in ((inner, a @ b), (outer, (a @ b).T)):
        for function in (lt.cpp(swapped), lt.cpu_interpreted(swapped)):
            out = lt.RawTensor(15)
            function([lt.RawTensor(12).set(a), lt.RawTensor(20).set(b), out])
            assert np.allclose(out.to_numpy(), expected.reshape(-1), atol=1e-3)
    for arguments, said in (((0, 0, 1), "caller's memory"), ((3, 0, 1), "has no dimension k"), ((9, 0, 1), "no operation '%9'")):
        with pytest.raises(lt.ScheduleError, match=said):
            tree.swap_vars(*arguments)


def test_an_uneven_rfactor_is_compiled_right():
    a = np.random.randn(6, 33)
    x = lt.Tensor(a)
    m, k = lt.symbols("m k")
    for reduced, expected in ((x.to(m, k).exp().sum(k), np.exp(a).sum(1)), ((-x.to(m, k)).abs().max_reduce(k), np.abs(a).max(1)),
                              ((-x.to(m, k).abs()).max_reduce(k), -np.abs(a).min(1))):
        start = reduced.loop_tree
        (node,) = (node for node in start.ir.nodes if start.ir.op(node) in (lt.add, lt.max))
        for sizes in ((8,), (20, 6), (15, 4)):
            tree = start
            for depth, size in enumerate(sizes):
                tree = tree.split("k" + "'" * depth, size)
            for depth in range(len(sizes) + 1):
                factored = tree.rfactor(f"%{node}", "k" + "'" * depth)
                for function in (lt.cpp(factored), lt.cpu_interpreted(factored)):
                    out = lt.RawTensor(6)
                    function([lt.RawTensor(a.size).set(a), out])
                    assert np.allclose(out.to_numpy(), expected, rtol=1e-3), str(factored)


def test_an_uneven_rfactor_repeats_an_operand_as_often_as_before():
    a, b = np.random.randn(6, 33), np.random.randn(6)
    ir = lt.IR()
    m, k = ir.create_var("m", 6), ir.create_var("k", 33)
    x, y = ir.create_node("read", [], [m, k]), ir.create_node("read", [], [m])
    total = ir.create_node("add", [x, y], [m])
    write = ir.create_node("write", [total], [m])
    ir.set_inputs([x, y])
    ir.set_outputs([write])
    ir.set_order(total, [(m, (6, 0)), (k, (33, 0))])
    ir.set_order(write, [(m, (6, 0))])
    split = lt.LoopTree(ir).split("k", 8)
    for loop in ("k", "k'"):
        tree = split.rfactor(f"%{total}", loop)
        for function in (lt.cpp(tree), lt.cpu_interpreted(tree), lt.cpu(tree)):
            out = lt.RawTensor(6)
            function([lt.RawTensor(a.size).set(a), lt.RawTensor(6).set(b), out])
            assert np.allclose(out.to_numpy(), a.sum(1) + 33 * b, atol=1e-3), str(tree)


def test_numbers_and_callbacks_mean_what_they_meant():
    tree = mm(lt.rand(3, 4), lt.rand(4, 5)).loop_tree
    assert tree.disable_reuse(0, 2) == tree.disable_reuse(0, "%2") != tree  # the node of the program, not a line
    assert tree.disable_reuse(0, 2).enable_reuse(0, 2) == tree
    line = tree.leaves(-1)[0]
    assert "copy(%0)" in str(tree.copy_input(line, 0))                      # a line
    assert tree.try_swap(2, line) == tree                                   # the editor's step onto an operation
    assert tree.dump(callback=lambda ref: "x").count(" x\n") == len(tree.loops) + len(tree.leaves(-1))
    assert tree.__repr__(lambda ref: "x") == tree.dump(lambda ref: "x")
    seen = []
    tree.walk(lambda ref, depth: seen.append((ref, depth)), root=tree.loops[1])
    assert seen[0] == (1, 0)


def test_annotations_are_words_of_any_kind():
    a, b = np.random.randn(8, 9), np.random.randn(9, 10)
    c = mm(lt.Tensor(a), lt.Tensor(b))
    tree = c.loop_tree
    with pytest.warns(UserWarning, match="'cuda' is printed and has no effect"):
        noted = tree.annotate(tree.roots[0], "cuda")
    assert str(noted).splitlines()[0].endswith(": L0 cuda")
    assert str(lt.LoopTree(lt.deserialize(noted.ir.serialize()))) == str(noted)
    c.set(noted)
    close(c, a @ b)
    assert c.loop_tree.dump().count("cuda") == 1 and c.code and c.compiled.code
    for function in (noted, lt.cpp(noted), lt.cpu_interpreted(noted)):
        out = lt.RawTensor(80)
        function([lt.RawTensor(72).set(a), lt.RawTensor(90).set(b), out])
        assert np.allclose(out.to_numpy().reshape(8, 10), a @ b, atol=1e-3)
    c.set(tree)


def test_lines_are_found_again_in_the_new_tree():
    tree = mm(lt.rand(8, 9), lt.rand(9, 10)).loop_tree
    split = tree.split(0, 2)
    assert [split.map_ref(ref, tree) for ref in range(7)] == [0, 2, 3, 4, 5, 6, 7]
    swapped = tree.try_swap(0, tree.next_ref(0))
    assert swapped.map_ref(0, tree) == 1 and lt.map_ref(swapped, 1, tree) == 0
    assert tree.remove_loop(tree.leaves(-1)[2], 1) == tree  # the write needs no loop over k
    with pytest.raises(lt.ScheduleError, match="more than one iteration"):
        tree.remove_loop(tree.leaves(-1)[0], 1)
    assert isinstance(tree.ir, lt.IR) and tree.ir.create_node("mul", [0, 1], [0, 1, 2]) == 5


def test_operations_are_numbers_and_names():
    ir = mm(lt.rand(3, 4), lt.rand(4, 5)).ir
    (product,) = (node for node in ir.nodes if ir.op(node) == lt.multiply)
    assert product == 2 and ir.op(product) in (lt.add, lt.multiply) and ir.op(product) != lt.add
    assert not ir.op(product) != lt.multiply and not lt.view != 3
    assert lt.view == 3 and {lt.view: "v"}[3] == "v" and lt.Operation("exp") is lt.exp and lt.Operation(12) is lt.exp
    with pytest.raises(ValueError, match="expp"):
        lt.Operation("expp")
    with pytest.raises(loopfleet.LoopfleetError, match="backends are built in: cpu"):
        lt.load_lib("libloop_tool_cuda.so")
