#pragma once
// ScheduleSearch: looks for a fast schedule by random walks and by changes to the best ones found
// so far: what an actor without any learning can do. Only with actions of dialect agent.

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
  std::vector<looptree::Action> actions;  // from the benchmark's start
  double best_ns = 0;                     // as the search saw it
  std::uint64_t evaluated = 0;            // different trees
};
Result<Found> SearchSchedule(Toolchain& tools, QuietCore& core,
                             const looptree::Benchmark& benchmark, const SearchOptions& options);

}  // namespace loopfleet::bench
