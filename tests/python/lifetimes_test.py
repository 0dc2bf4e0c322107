"""Objects outlive what they were made from, in any order, across forks and at the end of the process. Most of what goes
wrong here shows only under the address sanitizer (preset asan), where freed memory is not used again."""

import gc
import itertools
import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest

import loopfleet.loop_tool as tool
import loopfleet.tensor as lt
from loopfleet import IR, LoopTree, _core
from tensors import numbers, own_cache, product  # noqa: F401 (a fixture)

MM = "benchmark://mm-v0/mm33_9_7"


def churn(collect=True):
    """Takes the memory that was freed last."""
    if collect:
        gc.collect()
    for size in (3, 64, 64 * 64):
        lt.Tensor(np.full(size, 7.0)).numpy()


def read(shown):
    """The values, copied by code that the sanitizer watches."""
    return lt.Tensor(np.asarray(shown)).numpy()


def in_every_order(make, look):
    """`make` gives objects by name; `look` raises if one of those that are left is not what it was."""
    count = len(make())
    for order in itertools.permutations(range(count)):
        objects = make()
        names = list(objects)
        for place in order:
            del objects[names[place]]
            churn(collect=False)
            look(objects)


def test_a_tensor_its_inputs_and_whatever_shows_its_values():
    a = numbers(64, 64)
    expected = a @ a

    def make():
        own = a.copy()
        leaf = lt.Tensor(own, copy=False)
        result = product(leaf, leaf)
        return {"array": own, "leaf": leaf, "result": result, "numpy": result.numpy(), "view": memoryview(result)}

    def look(left):
        for name, shown in left.items():
            if name != "array":
                assert np.allclose(read(shown), a if name == "leaf" else expected, atol=1e-3)

    in_every_order(make, look)


class Producer:
    """Has memory of NumPy's and shows it by DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_arrays_that_come_in_and_go_out_by_dlpack():
    a = numbers(32, 32)

    def make():
        producer = Producer(a.copy())
        leaf = lt.from_dlpack(producer)
        result = leaf + 1
        return {"producer": producer, "leaf": leaf, "result": result, "again": np.from_dlpack(result)}

    def look(left):
        if "leaf" in left:
            assert np.array_equal(read(left["leaf"]), a)
        for name in left.keys() & {"result", "again"}:
            assert np.array_equal(read(left[name]), a + np.float32(1))

    in_every_order(make, look)


def test_dlpack_capsules_that_nobody_takes():
    result = lt.Tensor(numbers(100)) + 1
    capsules = [result.__dlpack__() for _ in range(3)]
    del result
    churn()
    taken = np.from_dlpack(Capsule(capsules.pop()))
    del capsules
    churn()
    assert np.isfinite(read(taken)).all()


class Capsule:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("backend", ["cpu", "cpu_interpreted", "isolated"])
def test_compiled_functions_and_kernels_outlive_tensors_and_backends(backend):
    x, y = numbers(12, 20), numbers(20, 8, seed=1)
    with lt.Backend(backend):
        a, b = lt.Tensor(12, 20), lt.Tensor(20, 8)
        c = product(a, b)
        f = lt.compile(c, inputs=[a, b])
        kernel = tool.Compiled(c.loop_tree, interpreted=backend == "cpu_interpreted")
        out = f(x, y)
        del a, b, c
        churn()
        assert np.allclose(f(x, y), x @ y, atol=1e-4)
    lt.set_default_backend("cpu_interpreted")  # drops what the session has compiled
    lt.set_default_backend("cpu")
    churn()
    assert np.allclose(f(x, y, out=np.empty((12, 8), np.float32)), out)
    raw = tool.RawTensor(12 * 8)
    kernel([x, y, raw._data])
    assert np.allclose(raw.numpy().reshape(12, 8), out, atol=1e-4)
    del f, kernel
    churn()
    assert np.allclose(out, x @ y, atol=1e-4)


def test_parts_of_trees_and_expressions_outlive_the_whole():
    tree = LoopTree(MM)
    loops, ir = [tree.loop(ref) for ref in tree.loops], tree.ir
    split = tree.split("m", 8)
    with pytest.warns(UserWarning, match="no effect"):
        noted = split.annotate("m", "a note")
    text = str(tree)
    del tree, split
    churn()
    assert [loop.label for loop in loops] == ["m", "k", "n", "n"] and str(LoopTree(ir)) == text
    assert "a note" in str(noted) and noted.ir.serialize() == IR.parse(noted.ir.serialize()).serialize()
    del noted, ir
    m, n = lt.symbols("m n")
    sums = [m + n * 2, lt.Size(m) - 1]
    names = [repr(each) for each in sums]
    del m, n
    churn()
    assert [repr(each) for each in sums] == names
    walk = _core.Walk(benchmark=MM)
    seen = walk.observe("loop_tree")
    del walk
    churn()
    assert "for m in 33" in seen


def test_callbacks_that_raise_or_drop_what_calls_them():
    trees = [LoopTree(MM)]

    def drop(ref, depth):
        trees.clear()
        churn()
        if ref == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        trees[0].walk(drop)
    assert not trees
    for given in (None, "a", object(), [1, "a"], np.zeros(3, complex), 2**70):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            lt.Tensor(3) + lt.Tensor(given)
    churn()


def test_a_leaf_that_is_set_while_others_hold_its_values():
    leaf = lt.Tensor(numbers(64))
    shown = [leaf.numpy(), memoryview(leaf), np.from_dlpack(leaf)]
    expected = np.array(shown[0])
    for round in range(5):
        leaf.set(np.full(64, round))
        churn()
        assert all(np.array_equal(read(each), expected) for each in shown)
    array = numbers(64)
    leaf.set(array, copy=False)
    result = leaf + 1
    del array
    leaf.set(numbers(64, seed=1))
    churn()
    assert result.numpy().shape == (64,)


def test_long_chains_are_freed_without_a_deep_stack():
    chain = lt.Tensor(3)
    middle = None
    for step in range(20_000):
        chain = chain + 1
        middle = chain if step == 10_000 else middle
    del chain
    churn()
    del middle
    churn()


def test_threads_make_and_drop_graphs_at_once():
    leaf = lt.Tensor(numbers(32, 32))
    wrong = []

    def work(seed):
        draw = random.Random(seed)
        kept = []
        for _ in range(100):
            result = (leaf + seed).numpy()
            kept.append(result)
            if draw.random() < 0.5:
                kept.pop(draw.randrange(len(kept)))
        if not all(np.array_equal(each, kept[0]) for each in kept):
            wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_forked_processes_have_tensors_of_their_own():
    array = numbers(16, 16)
    leaf = lt.Tensor(array, copy=False)
    result = product(leaf, leaf)
    f = lt.compile(result, inputs=[leaf])
    expected = f(array)
    children = []
    for child in range(3):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                assert np.array_equal(f(array), expected) and np.array_equal(result.numpy(), expected)
                assert np.allclose((result + child + 1).numpy(), expected + child + 1)
                churn()
                status = 0
            finally:
                os._exit(status)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
    assert np.array_equal(f(array), expected)


END = """
import gc, sys
import numpy as np
import loopfleet.tensor as lt
from loopfleet import LoopTree
a = np.ones((8, 8), np.float32)
x = lt.Tensor(a, copy=False)
c = (x + 1).sum()
f = lt.compile(c, inputs=[x])
tree, values, view, capsule = c.loop_tree, c.numpy(), memoryview(x + 2), (x + 3).__dlpack__()
ring = [x, c]
ring.append(ring)
class Late:
    def __del__(self):
        assert self.c.item() == 128 and self.f(self.a) == 128
late = Late()
late.a, late.f, late.c = a, f, c
print(f(a), flush=True)
{end}
"""


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "del a, x; gc.collect()", "lt.set_default_backend('cpu_interpreted')",
                                 "import os; child = os.fork(); assert not child or os.waitpid(child, 0)[1] == 0"])
def test_a_process_ends_with_tensors_alive(end):
    done = subprocess.run([sys.executable, "-c", END.format(end=end)], capture_output=True, text=True, timeout=120)
    # A compiler that starts while the process ends says so.
    said = [line for line in done.stderr.splitlines() if not line.startswith("loopfleet-worker: ")]
    assert (done.returncode, done.stdout.strip(), said) == (0, "128.0", [])
