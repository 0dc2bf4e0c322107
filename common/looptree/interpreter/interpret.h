#pragma once
// Two ways to run a program without compiling it. Every backend is checked against them.

#include <span>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

using Tensor = std::vector<float>;  // row-major over the node's dims

// Runs the tree as written, loop by loop, with each intermediate in a buffer of its scope's size.
// The lowering has to reproduce this. Slow (a few million points a second), for tests. inputs[i]
// belongs to program.inputs[i]; the result has the order of program.outputs.
//
// The meaning of a tree, for this interpreter and for every lowering:
//
// 1. Loops. Each dimension has an offset (initially 0) and a range (initially its size). A loop
//    over dim d cuts d's range R into pieces of `inner` elements. Its body runs once for each p of
//    0, inner, 2*inner, ... < R, with d's offset increased by p and d's range min(inner, R - p).
//    Over the whole range these are `size` full pieces and, if tail > 0, one of `tail` elements;
//    inside the tail of an outer loop over d they are fewer. Operations see offsets: at a leaf, its
//    own dims have range 1.
// 2. Results. A node's result lives in a buffer of BufferExtent(node, d) elements along each of its
//    dims d, row-major in the order of Node::dims, addressed by offset(d) minus d's offset at entry
//    of the node's scope (ScopeOf). Writes go to the output tensors, addressed by the offset
//    itself. Reads without loops come directly from the input tensors.
// 3. Reductions. A reduction starts at the identity (add 0, multiply 1, min +inf, max -inf): its
//    whole buffer is set to it at the start of each iteration of its scope's loop, or of the kernel
//    if it has no scope. Every run of its leaf combines one operand into one element. This suffices
//    because no loop over a reduced dim is ever around a reader (B.3 step 7): all those loops,
//    however split and interleaved with loops over kept dims, are strictly inside the scope.
// 4. Foreign loops. A leaf may be inside a loop over a dim that it does not run over, because it
//    follows an operation with more dims. If that loop is strictly inside the leaf's scope, the
//    leaf runs only in the loop's first piece: running again would repeat a reduction. At or above
//    the scope the buffer is new in each iteration, so the leaf runs in each.
// 5. Views. Views without loops are folded into their readers as affine index maps (access.h).
//    LoopTree::Build rejects trees in which such a map would read an element before it is computed.
//    Where a guarded index is not whole or not inside, nothing is read: the element is the view's
//    `outside`. Of several folded views the one nearest to the reader decides first.
std::vector<Tensor> Interpret(const LoopTree& tree, std::span<const Tensor> inputs);

// The program's result in float64, independent of the schedule. Kernel outputs are compared with
// it. Fast enough to run once per benchmark: vectorised over the innermost dimension, without
// storing the operands of reductions whole.
struct Reference {
  std::vector<std::vector<double>> outputs;  // per program.outputs
  // Per output element, how far a correct float32 kernel may be from `outputs`, with any order of
  // summation, with or without fused multiply-add, and with elementary functions accurate to 8 ulp.
  // A running error bound: n additions contribute n * 2^-24 times the sum of magnitudes. Infinity
  // where nothing is guaranteed: float32 may overflow, or a function leaves its domain. 1 where the
  // operands of a comparison are too close to tell; likewise for the steps of floor, ceil and
  // round. 2 for sines and cosines of numbers beyond 65,536.
  //
  // An empty inner vector means 0 everywhere: outputs must be equal. It is empty exactly if nothing
  // on the way to the output can round: every add, subtract and multiply, partial sums included,
  // gives integers that the magnitudes of the inputs prove to be at most 2^24, and every other
  // operation only moves, compares, negates or takes the absolute value.
  std::vector<std::vector<double>> tolerance;
};
Reference Evaluate(const Program& program, std::span<const Tensor> inputs);

}  // namespace loopfleet::looptree
