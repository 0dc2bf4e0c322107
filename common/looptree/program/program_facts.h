#pragma once
// ProgramFacts: facts about a program that every tree of it needs. Computed once, then shared by
// all trees of a walk. Immutable.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/looptree/program/dim_set.h"
#include "common/looptree/program/limits.h"
#include "common/looptree/program/program.h"
#include "common/looptree/program/rejection.h"

namespace loopfleet::looptree {

struct ProgramFacts {
  struct NodeFacts {
    DimSet dims;       // of the result
    DimSet iteration;  // dims that its loops must cover: the result's and the reduced ones
    DimSet reduced;
    std::vector<NodeId> consumers;  // each once, ascending
  };
  std::vector<NodeFacts> nodes;
  std::vector<DimId> base;         // per dim: the dim that a view maps it to, or itself
  std::vector<double> priorities;  // that `order` was made with
  std::vector<NodeId> order;       // in which operations are placed in the tree (spec B.3)
  std::uint64_t tensor_bytes = 0;  // inputs and outputs
  std::uint64_t flop_count = 0;
  bool has_views = false;

  // Rejects every program that cannot be run: dangling or cyclic references, sizes below 1, views
  // that leave their input, work or tensors beyond `limits`. After this, all arithmetic on the
  // program's sizes fits in 64 bits.
  static Checked<std::shared_ptr<const ProgramFacts>> Of(const Program& program,
                                                         std::span<const double> priorities,
                                                         const Limits& limits);
  // For a program that was accepted before, under any limits. Aborts if it is invalid.
  static std::shared_ptr<const ProgramFacts> OfValid(const Program& program);
};

}  // namespace loopfleet::looptree
