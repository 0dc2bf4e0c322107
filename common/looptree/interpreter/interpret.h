#pragma once
// Two ways to run a program without compiling it: the oracles of every backend.

#include <span>
#include <vector>

#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::looptree {

using Tensor = std::vector<float>;  // row-major over the node's dims

// Runs the tree as written, loop by loop, each intermediate in a buffer of its scope's size: what
// the lowering has to reproduce. Slow (a few million points a second): for tests. inputs[i] belongs
// to program.inputs[i]; the result to program.outputs.
//
// The meaning of a tree, for this interpreter and for every lowering:
//
// 1. Loops. Each dimension has an offset (0 at first) and a range (its size at first). A loop over
// dim d
//    cuts d's range R into pieces of `inner` elements: for p = 0, inner, 2*inner, ... < R its body
//    runs with d's offset increased by p and d's range min(inner, R - p). With the whole range this
//    is `size` full pieces and, if tail > 0, one of `tail` elements; inside the tail of an outer
//    loop over d it is fewer. Operations see offsets: at a leaf the ranges of its own dims are 1.
// 2. Results. A node's result lives in a buffer of BufferExtent(node, d) elements along each of its
//    dims d, row-major in the order of Node::dims, addressed by offset(d) minus d's offset at the
//    entry of its scope (ScopeOf). Writes go to the output tensors, addressed by the offset itself,
//    and reads without loops come straight from the input tensors.
// 3. Reductions. A node that reduces starts at the identity (add 0, multiply 1, min +inf, max
// -inf):
//    its whole buffer is set to it at the start of each iteration of its scope's loop (of the
//    kernel if it has none). Every run of its leaf combines one operand into one element. This is
//    enough because no loop over a dim that it reduces is ever around a reader (B.3 step 7), so all
//    of them, however split and interleaved with loops over kept dims, are strictly inside the
//    scope.
// 4. Foreign loops. A leaf may stand inside a loop over a dim it does not run over (it then came
// after an
//    operation with more dims). Where that loop is strictly inside its scope, the leaf runs only in
//    the loop's first piece: running again would repeat a reduction. At or above the scope the
//    buffer is new in each iteration, so the leaf runs in each.
// 5. Views without loops are folded into their readers as affine index maps (access.h).
// LoopTree::Build
//    refuses trees in which such a map would reach an element that is not computed yet.
std::vector<Tensor> Interpret(const LoopTree& tree, std::span<const Tensor> inputs);

// What the program means, whatever the schedule, in float64: what a kernel's output is compared
// with. Fast enough to be run once for each benchmark (vectorised over the innermost dimension; no
// intermediate of a reduction is held whole).
struct Reference {
  std::vector<std::vector<double>> outputs;  // per program.outputs
  // Per output element, how far a correct float32 kernel may be from `outputs`, with any order of
  // summation, with or without fused multiply-add, and with elementary functions good to 8 ulp:
  // a running error bound, in which n additions contribute n * 2^-24 times the sum of magnitudes.
  // An empty inner vector means 0 everywhere, so only equality will do. It is empty exactly when
  // nothing on the way to the output can round: every add, subtract and multiply, partial sums
  // included, gives integers that the largest magnitudes of the inputs prove to be at most 2^24,
  // and everything else only moves, compares, negates or takes the absolute value. Infinity where
  // nothing is promised: float32 may overflow, or a function leaves its domain.
  std::vector<std::vector<double>> tolerance;
};
Reference Evaluate(const Program& program, std::span<const Tensor> inputs);

}  // namespace loopfleet::looptree
