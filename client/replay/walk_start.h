#pragma once
// WalkStart: where a walk of dialect agent begins, in `loopfleet replay` and in Python.

#include <cstdint>
#include <expected>

#include "common/job/failure.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/datasets/benchmark.h"

namespace loopfleet::client {

struct WalkStart {
  looptree::RuleSet rules = looptree::RuleSet::kStructural;
  bool merge_all_first = false;
  std::int64_t cursor = 0;  // a loop of the tree once it is merged, or 0
};

// kMalformed: the cursor is neither. Undo does not reach behind the start.
std::expected<looptree::AgentWalk, Failure> StartWalk(looptree::Benchmark benchmark,
                                                      const WalkStart& start);

}  // namespace loopfleet::client
