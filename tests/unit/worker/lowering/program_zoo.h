#pragma once
// Small, odd-sized programs of every kind that the language has, a plain tree for each, and random
// trees: the inputs of the lowering tests.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

// Builds a program node by node.
class ProgramBuilder {
 public:
  looptree::DimId Dim(const std::string& name, std::int64_t size);
  looptree::NodeId Read(std::vector<looptree::DimId> dims);
  looptree::NodeId Constant(double value, std::vector<looptree::DimId> dims);
  looptree::NodeId View(looptree::NodeId input, std::vector<looptree::DimId> dims,
                        std::vector<looptree::ViewIndex> index);
  // All indices are guarded.
  looptree::NodeId GuardedView(looptree::NodeId input, std::vector<looptree::DimId> dims,
                               std::vector<looptree::ViewIndex> index, double outside);
  // Reduces over the dims that the inputs have and `dims` lacks.
  looptree::NodeId Compute(looptree::Op op, std::vector<looptree::NodeId> inputs,
                           std::vector<looptree::DimId> dims);
  looptree::NodeId Write(looptree::NodeId input, std::vector<looptree::DimId> dims);

  const looptree::Program& program() const { return program_; }

 private:
  looptree::NodeId Add(looptree::Node node);
  looptree::Program program_;
};

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
