#pragma once
// PlanPlaces: which node of the tree that a job asked for each loop and operation of a plan belongs
// to, and where an instrumented copy can read the clock. The plan may be of another tree: loops
// were joined and cut into strips.

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "kernel/profile_map.h"
#include "worker/lowering/kernel_plan.h"
#include "worker/lowering/vector_shape.h"

namespace loopfleet::worker {

// How the loops of the tree that a plan is of came from those of the tree that the job asked for.
struct LoopOrigins {
  const looptree::LoopTree& tree;            // the job's
  std::vector<looptree::TreeRef> of;         // by loop of the plan's tree: the job's loop
  std::vector<looptree::TreeRef> outermost;  // by the job's loop: the one that it was joined to
};

struct PlanPlaces {
  std::vector<ProfilePlace> loops;                      // by LoopId
  std::map<const Statement*, ProfilePlace> statements;  // never iterated
  // By step of the plan, then by loop: the site around it. Loops of register blocks, loops split
  // over threads from the inside, and loops that strips moved have none.
  std::vector<std::size_t> root_sites;
  std::map<LoopId, std::size_t> loop_sites;
  std::vector<ProbeSite> sites;
  std::vector<std::pair<looptree::TreeRef, looptree::TreeRef>> fused;  // ProfileMap::fused
};

// `plan` must not change or move while the result is used.
PlanPlaces PlacesOf(const KernelPlan& plan, const LoopOrigins& origins, const VectorShape& shape);

}  // namespace loopfleet::worker
