#pragma once
// Programs of every kind that the language has, small and odd-sized, with a plain schedule each,
// and random schedules of them: what lowerings are tested on.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

// Puts a program together node by node; dims by name.
class ProgramBuilder {
 public:
  looptree::DimId Dim(const std::string& name, std::int64_t size);
  looptree::NodeId Read(std::vector<looptree::DimId> dims);
  looptree::NodeId Constant(double value, std::vector<looptree::DimId> dims);
  looptree::NodeId View(looptree::NodeId input, std::vector<looptree::DimId> dims,
                        std::vector<looptree::ViewIndex> index);
  // What the inputs have and `dims` lacks is reduced.
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

// Each operation but reads, views and constants over its own dims, then those it reduces, one loop
// each.
looptree::LoopTree PlainTree(const looptree::Program& program);

// Loops in random order with random splits, tails and annotations, each operation for itself or
// like the one before; now and then reads, views and constants get loops too.
looptree::LoopTree RandomTree(const looptree::Program& program, SplitMix64& random);

}  // namespace loopfleet::worker
