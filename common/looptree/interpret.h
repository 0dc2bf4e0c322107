#pragma once
// Two ways to run a program without compiling it: the oracles of every backend.

#include <span>
#include <vector>

#include "common/looptree/loop_tree.h"

namespace loopfleet::looptree {

using Tensor = std::vector<float>;    // row-major over the node's dims

// Runs the tree as written, loop by loop, each intermediate in a buffer of its scope's size: what the
// lowering has to reproduce. Slow (a few million points a second): for tests.
// inputs[i] belongs to program.inputs[i]; the result to program.outputs.
std::vector<Tensor> Interpret(const LoopTree& tree, std::span<const Tensor> inputs);

// What the program means, whatever the schedule, in float64: what a kernel's output is compared with.
// Fast enough to be run once for each benchmark (vectorised over the innermost dimension; no
// intermediate of a reduction is held whole).
struct Reference {
  std::vector<std::vector<double>> outputs;    // per program.outputs
  // Per output element, a bound on what float32 rounding may add up to, in any order of summation:
  // 0 where every intermediate is an integer below 2^24, so that only equality will do.
  std::vector<std::vector<double>> tolerance;  // empty inner vector: all zero
};
Reference Evaluate(const Program& program, std::span<const Tensor> inputs);

}  // namespace loopfleet::looptree
