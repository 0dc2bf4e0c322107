#pragma once
// ScheduleSearch: searches for a fast schedule by random walks and by changes to the best schedules
// found so far. A baseline without learning. Uses only actions of dialect agent.

#include <cstdint>
#include <string>
#include <vector>

#include "bench/rigs/compiled_tree.h"
#include "bench/rigs/quiet_core.h"
#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/looptree/actions/action.h"
#include "common/looptree/datasets/benchmark.h"

namespace loopfleet::bench {

struct SearchOptions {
  Nanos budget = std::chrono::seconds(60);
  std::uint64_t seed = 1;
};
struct Found {
  std::vector<looptree::Action> actions;  // from the benchmark's first tree
  double best_ns = 0;                     // as measured during the search
  std::uint64_t evaluated = 0;            // distinct trees
};
Result<Found> SearchSchedule(Toolchain& tools, QuietCore& core,
                             const looptree::Benchmark& benchmark, const SearchOptions& options);

}  // namespace loopfleet::bench
