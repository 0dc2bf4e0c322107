"""Trees, their transformations and IR, without a cluster. Starts no process but an interpreter."""

import random
import subprocess

import pytest

import loopfleet
from loopfleet import IR, LoopTree, ScheduleError, _core

MM = "benchmark://mm-v0/mm33_9_7"
ARTICLE = "benchmark://program-v0/positive_product33_48_64"


@pytest.fixture
def tree():
    return LoopTree(MM)


def test_a_tree_comes_from_a_uri_or_ir_text_or_an_ir(tree):
    assert str(tree) == """\
for m in 33 : L0
 for k in 7 : L1
  for n in 9 : L2
   %2[m, k, n] <- multiply(%0, %1)
   %3[m, n] <- add(%2)
 for n in 9 : L5
  %4[m, n] <- write(%3)
"""
    assert LoopTree(tree.serialize()) == LoopTree(tree.ir) == tree
    assert hash(LoopTree(tree.serialize())) == hash(tree)
    assert tree.tree_key == _core.Walk(benchmark=MM).tree_key.hex()
    for source in ("benchmark://mm-v0/mm33", "v:m\n", ""):
        with pytest.raises(ScheduleError) as raised:
            LoopTree(source)
        assert raised.value.code == "INVALID_BENCHMARK"
        assert isinstance(raised.value, loopfleet.LoopfleetError) and isinstance(raised.value, ValueError)


def test_reading(tree):
    assert (tree.loops, tree.roots, tree.leaves()) == ([0, 1, 2, 5], [0], [3, 4, 6])
    assert tree.children(0) == [1, 5] and tree.children(-1) == [0] and tree.children("k") == [2]
    assert [tree.parent(ref) for ref in (0, 1, 3)] == [-1, 0, 2]
    assert tree.leaves("k") == [3, 4] and tree.leaves(-1) == [3, 4, 6]
    assert tree.is_loop(0) and not tree.is_loop(3) and not tree.is_loop("%4")
    assert [tree.ir_node(ref) for ref in tree.leaves()] == [2, 3, 4] and tree.ir_node("%3") == 3
    assert [tree.next_ref(ref) for ref in (0, 5, 6)] == [1, 6, 6]
    assert [tree.previous_ref(ref) for ref in (6, 1, 0)] == [5, 0, 0]
    assert [tree.trivially_parallel(ref) for ref in tree.loops] == [True, False, True, True]
    assert tree.flops() == 2 * 33 * 9 * 7 and tree.scratch_bytes == (9 + 1) * 4
    lines = []
    tree.walk(lambda ref, depth: lines.append((ref, depth)))
    assert lines == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (5, 1), (6, 2)]
    lines = []
    tree.walk(lambda ref, depth: lines.append((ref, depth)), 5)
    assert lines == [(5, 0), (6, 1)]
    assert tree.dump(3) == "%2[m, k, n] <- multiply(%0, %1)" and tree.dump("k") == "for k in 7 : L1"
    assert tree.dump(lambda ref: f"<{ref}>").splitlines()[1] == " for k in 7 : L1 <1>"


def test_a_loop_is_named_by_number_label_or_loop(tree):
    loop = tree.split("m", 8).loop("m'")
    assert (loop.ref, loop.name, loop.label, loop.size, loop.tail, loop.depth, loop.var) == (1, "m", "m'", 8, 0, 1, 0)
    assert repr(tree.split("m", 8).loop(0)) == "<Loop L0: m in 4 r 1>"
    for name in (1, "L1", "k", tree.loop("k")):
        assert tree.loop(name) == tree.loop(1)
    assert tree.loop(2) == tree.loop(5) and tree.loop(2) != tree.loop(1)
    assert tree.vectorize(tree.loop(5)).annotation(5) == "vectorize", "of equal ones, the one that it was"
    for name, said in (("n", "'n' is L2, L5: name one"), ("x", "no loop 'x'; nearest"), ("m'", "no loop 'm''"),
                       (3, "L3 is no loop but %2"), (7, "no L7: the tree has L0 to L6"), (-1, "no L-1"),
                       ("L9", "no L9")):
        with pytest.raises(ScheduleError, match=said):
            tree.loop(name)
    with pytest.raises(TypeError, match="a loop is named by"):
        tree.loop(1.5)
    with pytest.raises(ScheduleError, match="no operation '%9': the program has %0 to %4"):
        tree.copy_input("%9", 0)
    with pytest.raises(ScheduleError, match="L1 is a loop over k, no operation"):
        tree.copy_input(1, 0)


def test_transformations_chain_and_leave_the_old_tree(tree):
    before = str(tree)
    made = tree.split("m", 8).reorder("m", "n", "k", "m'")
    assert str(made) == """\
for m in 4 r 1 : L0
 for n in 9 : L1
  for k in 7 : L2
   for m' in 8 : L3
    %2[m, k, n] <- multiply(%0, %1)
    %3[m, n] <- add(%2)
  for m' in 8 : L6
   %4[m, n] <- write(%3)
"""
    assert str(tree) == before
    assert made.reorder(["m", "m'", "k", "n"]).merge("m'") == tree
    assert tree.split("m", 8).merge("m'") == tree and tree.merge("m") == tree
    assert tree.split("m", 8).split("m'", 2).merge_all() == tree
    assert tree.swap("m", "k") == tree.swap_loops(0, 1) == tree.try_swap("k", "m") == tree.reorder("k", "m")
    assert tree.try_swap(2, 5) == tree
    assert tree.unroll("k").annotation("k") == "unroll" and tree.unroll("k").clear("k") == tree
    assert tree.parallel("m") == tree.annotate("m", "thread") == tree.annotate(0, "cpu_parallel")
    assert tree.add_loop("m").remove_loop(0) == tree and tree.add_loop("k", "m").loops == [0, 1, 2, 3, 6]
    apart = tree.disable_reuse(2, "%2")
    assert len(apart.loops) == 5 and apart.enable_reuse(2, "%2") == tree == apart.increase_reuse("%2")
    assert tree.decrease_reuse("%2") == apart and tree.increase_reuse("%2") == tree == tree.enable_reuse(2, "%2")
    twice = tree.add_loop("n", "k")
    alone = twice.remove_loop("%2", 2)
    assert twice.loops == [0, 1, 2, 3, 6] and alone.loops == [0, 1, 2, 4, 5, 7] and alone.remove_loop("%3", 4) == tree
    assert tree.remove_loop("%4", "k") == tree  # the write does not run over k
    reads = LoopTree(IR.parse(tree.serialize().replace("n:2::0,1,:::0:::::", "n:2::0,1,:::0:0;33;0,1;7;0,::,,::")
                              .replace("n:2::1,2,:::0:::::", "n:2::1,2,:::0:1;7;0,2;9;0,::,,::")))
    assert reads.try_swap("%0", "%1") == reads.swap_nodes("%0", "%1") != reads == reads.try_swap("%2", "%3")


def test_an_annotation_may_be_any_word(tree):
    with pytest.warns(UserWarning, match="'vectorise' is printed and has no effect; .*; nearest: vectorize"):
        noted = tree.annotate(5, "vectorise")
    with pytest.warns(UserWarning, match="'of mine'"):
        noted = noted.annotate("m", "of mine")
    assert "for m in 33 : L0 of mine\n" in str(noted) and "for n in 9 : L5 vectorise\n" in noted.dump()
    assert noted.annotation(5) == noted.loop(5).annotation == "vectorise"
    assert noted == tree and noted.tree_key == tree.tree_key and noted.serialize() == tree.serialize()
    assert str(noted.swap("m", "k").unroll(1)).count("of mine") == 1
    assert noted.clear("m").annotation("m") == "" and "of mine" not in str(noted.clear("m"))
    text = noted.ir.serialize()
    assert str(LoopTree(IR.parse(text))) == str(noted) and str(LoopTree(noted.ir)) == str(noted)
    with pytest.raises(ScheduleError, match="annotation 'of mine' of a loop; valid: cpu_parallel"):
        LoopTree(text)


@pytest.mark.parametrize("change, said", [
    (lambda t: t.split("m", 0), "cannot be split by 0"),
    (lambda t: t.split("m", 34), "cannot be split by 34"),
    (lambda t: t.swap(2, 5), "neither is inside the other"),
    (lambda t: t.reorder("k", "k"), "named twice"),
    (lambda t: t.split("m", 8).reorder("m'", "m"), "run over one dimension"),
    (lambda t: t.annotate("m", "a,b"), "'a,b' is no annotation: a word has no comma"),
    (lambda t: t.annotate(3, "unroll"), "L3 is no loop but %2"),
    (lambda t: t.remove_loop("m"), "more than one iteration"),
    (lambda t: t.remove_loop("%2", "m"), "more than one iteration"),
    (lambda t: t.remove_loop("%4", 2), "%4 .write. does not run over L2"),
    (lambda t: t.add_loop("mm"), "no dimension 'mm'; nearest: m"),
    (lambda t: t.increase_reuse("m"), "already share"),
    (lambda t: t.compute_at("%0", "m"), "no loops of its own"),
    (lambda t: t.rfactor("%3", "k"), "L1 is all of k: split it first"),
    (lambda t: t.delete_copy("%2"), "is no copy"),
    (lambda t: t.swap_nodes("%2", "%3"), "reads %2"),
])
def test_what_a_tree_does_not_admit_says_why(tree, change, said):
    with pytest.raises(ScheduleError, match=said) as raised:
        change(tree)
    assert raised.value.code == "INVALID_ACTION"


def test_transformations_of_the_program(tree):
    copied = tree.copy_input("%2", 0)
    assert "%5[m, k] <- copy(%0)" in str(copied) and copied.program_key != tree.program_key
    assert copied.delete_copy("%5") == tree and copied.delete_copy("%5").program_key == tree.program_key
    two = LoopTree("benchmark://program-v0/twomm4_5_6_3")
    closer = two.compute_at("%4", 5)
    assert closer.scratch_bytes < two.scratch_bytes and closer.program_key == two.program_key
    lanes = LoopTree("benchmark://program-v0/reduce_add4_64").split("k", 16).rfactor("%1", "k'")
    assert "%4[m, k_part] <- add(%3)" in str(lanes)


def test_the_articles_tile_by_hand_and_by_actions():
    start = LoopTree(ARTICLE)
    walk = _core.Walk(benchmark=ARTICLE)
    for action in ("down", "swap_down", "up", "split_32", "up", "split_8", "down", "swap_down", "down", "down",
                   "swap_up", "swap_up"):
        assert walk.apply(action)
    tile = LoopTree(walk.observe("ir"))
    assert tile.tree_key == walk.tree_key.hex()
    actions = tile.actions_from(start)
    again = _core.Walk(benchmark=ARTICLE)
    assert all(again.apply(action) for action in actions) and again.tree_key == walk.tree_key
    assert start.actions_from(start) == [] and start.split("m", 8).actions_from(start) == ["split_8"]
    assert start.parallel("m").actions_from(start) is None and start.actions_from(LoopTree(MM)) is None


def test_map_ref_finds_the_nearest_loop(tree):
    split = tree.split("m", 8)
    assert [split.map_ref(ref, tree) for ref in tree.loops] == [0, 2, 3, 6]
    assert [tree.map_ref(ref, split) for ref in split.loops] == [0, 0, 1, 2, 5]
    assert split.map_ref("%3", tree) == split.leaves()[1]
    with pytest.raises(ScheduleError, match="%5 of the other tree has no line in this one"):
        tree.map_ref("%5", tree.copy_input("%2", 0))


def test_random_scripts_never_end_the_process_and_keep_the_text_readable():
    draw = random.Random(5)
    made = 0
    for uri in (MM, ARTICLE, "benchmark://program-v0/twomm4_5_6_3", "benchmark://program-v0/conv1d14_3"):
        tree = LoopTree(uri)
        for _ in range(1500):
            refs = list(range(-1, len(tree.loops) + len(tree.leaves()) + 1)) + ["m", "k'", "%2", "%9", "L1", None, 1.5]
            one, other = draw.choice(refs), draw.choice(refs)
            change = draw.choice([
                lambda t: t.split(one, draw.randrange(-1, 9)), lambda t: t.merge(one), lambda t: t.swap(one, other),
                lambda t: t.reorder(one, other), lambda t: t.annotate(one, draw.choice(["unroll", "thread", "", "x,y"])),
                lambda t: t.decrease_reuse(one), lambda t: t.increase_reuse(one), lambda t: t.merge_all(),
                lambda t: t.disable_reuse(one, other), lambda t: t.compute_at(one, other), lambda t: t.remove_loop(one),
                lambda t: t.copy_input(one, draw.randrange(3)), lambda t: t.delete_copy(one),
                lambda t: t.swap_nodes(one, other), lambda t: t.rfactor(one, other), lambda t: t.add_loop(one, other)])
            try:
                tree = change(tree)
                made += 1
            except (ScheduleError, TypeError, RuntimeError) as error:
                assert str(error)
            if len(tree.loops) > 40:
                tree = LoopTree(uri)
        assert LoopTree(tree.serialize()) == tree
    assert made > 500


def test_an_ir_is_made_node_by_node(tree):
    ir = IR()
    m, k, n = (ir.create_var(name) for name in "mkn")
    a, b = ir.create_node("read", [], [m, k]), ir.create_node(2, [], [k, n])
    product = ir.create_node("multiply", [a, b], [m, k, n])
    total = ir.create_node("add", [product], [m, n])
    result = ir.create_node("write", [total], [m, n])
    with pytest.raises(ScheduleError, match="no loop says how large m is"):
        LoopTree(ir)
    ir.set_inputs([a, b])
    ir.set_outputs([result])
    for node in (product, total):
        ir.set_order(node, [(m, (33, 0)), (k, (7, 0)), (n, (9, 0))])
    ir.set_order(result, [(m, (33, 0)), (n, (9, 0))])
    assert LoopTree(ir) == tree and ir.serialize() == tree.serialize()
    assert str(ir).startswith("digraph") and ir.vars == [0, 1, 2] and ir.nodes == [0, 1, 2, 3, 4]
    assert ir.inputs() == [a, b] and ir.inputs(total) == [product] and ir.outputs() == [result]
    assert ir.outputs(a) == [product] and ir.op(total) == "add" and ir.dump_var(k) == "k"
    assert ir.dump(total) == "%3[m, n] <- add(%2)"
    assert ir.output_vars(total) == ir.pointwise_vars(total) == [m, n]
    assert ir.loop_vars(total) == ir.all_vars(total) == [m, k, n]
    assert ir.order(result) == [(m, (33, 0)), (n, (9, 0))] and set(ir.orders) == {product, total, result}
    ir.annotate(product, 0, "unroll")
    ir.disable_reuse(total, 1)
    ir.set_priority(total, 0.5)
    assert ir.priorities[total] == 0.5 and LoopTree(ir) != tree
    ir.set_order(total, [(m, (32, 0))])
    with pytest.raises(ScheduleError, match="do not cover"):
        LoopTree(ir)
    for broken in (lambda: ir.order(9), lambda: ir.set_order(0, [(7, (1, 0))]), lambda: ir.annotate(0, 0, "unroll"),
                   lambda: ir.create_node("ad", [], []), lambda: ir.create_node(20, [], []), lambda: ir.dump(99)):
        with pytest.raises(ScheduleError):
            broken()
    with pytest.raises(ScheduleError, match="nearest: add"):
        ir.create_node("ad", [], [])


def test_an_ir_with_a_guarded_view_and_a_constant():
    ir = IR()
    i, o = ir.create_var("i", 4), ir.create_var("o")
    x = ir.create_node("read", [], [i])
    padded = ir.create_view(x, [o], [(i, [(o, 1)], -1, 1)], outside=0)
    scaled = ir.create_node("multiply", [padded, ir.create_constant(3)], [o])
    result = ir.create_node("write", [scaled], [o])
    ir.set_inputs([x])
    ir.set_outputs([result])
    for node in (scaled, result):
        ir.set_order(node, [(o, (7, 0))])
    made = LoopTree(ir)
    assert "multiply(%1, 3)" in str(made)
    assert "outside=0x0p+0" in ir.serialize() and "constant=0x1.8p+1" in ir.serialize()
    assert LoopTree(made.ir) == made


def test_importing_takes_no_llvm_and_no_sockets():
    lines = subprocess.run(["ldd", _core.__file__], capture_output=True, text=True, check=True).stdout
    assert "LLVM" not in lines and "zmq" not in lines
