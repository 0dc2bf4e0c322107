#pragma once
// Small, odd-sized programs of every kind that the language has, a plain tree for each, and random
// trees: the inputs of the lowering tests.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/looptree/tree/loop_tree.h"
#include "common/looptree/tree/program_builder.h"

namespace loopfleet::worker {

using looptree::ProgramBuilder;

struct ZooProgram {
  std::string name;
  looptree::Program program;
};
std::vector<ZooProgram> ProgramZoo();

// One loop for each dim, first an operation's own dims, then those it reduces over. Reads, views
// and constants get no loops.
looptree::LoopTree PlainTree(const looptree::Program& program);

// A matrix product for each of `rows`, over dims of its own and under a root of its own, in loops
// m, k, n. Their work is as their rows.
looptree::LoopTree ProductsTree(const std::vector<std::int64_t>& rows, std::int64_t depth,
                                std::int64_t columns);

// A sum that is written to each row of an output, in a loop that writes something else before.
looptree::LoopTree RepeatedSumTree();

// Loops in random order with random splits, tails and annotations, for each operation by itself or
// like the one before; sometimes reads, views and constants get loops, too.
looptree::LoopTree RandomTree(const looptree::Program& program, SplitMix64& random);

}  // namespace loopfleet::worker
