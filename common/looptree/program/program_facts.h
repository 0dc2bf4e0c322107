#pragma once
// ProgramFacts: what follows from a program alone and every tree of it needs again: worked out
// once, then shared by all trees of a walk.

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
    DimSet iteration;  // what its loops must cover: the result's dims and the reduced ones
    DimSet reduced;
    std::vector<NodeId> consumers;  // each once, ascending
  };
  std::vector<NodeFacts> nodes;
  std::vector<DimId> base;         // of each dim: the dim that a view maps it to, or itself
  std::vector<double> priorities;  // what `order` was made for
  std::vector<NodeId> order;       // the order in which operations are put into the tree (B.3)
  std::uint64_t tensor_bytes = 0;  // inputs and outputs
  std::uint64_t flop_count = 0;
  bool has_views = false;

  // Refuses every program that could not be run: dangling or cyclic references, sizes below 1,
  // views that leave their input, work or tensors beyond `limits`. All later arithmetic on the
  // program's sizes fits 64 bits once this has passed.
  static Checked<std::shared_ptr<const ProgramFacts>> Of(const Program& program,
                                                         std::span<const double> priorities,
                                                         const Limits& limits);
  // Of a program that was admitted before, under whatever limits.
  static std::shared_ptr<const ProgramFacts> OfAdmitted(const Program& program);
};

}  // namespace loopfleet::looptree
