#pragma once
// ScheduleSearch: finds the best schedule of a square matrix product on a device within a time
// budget. Tries known good schedules first, then random changes to the best ones.

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "common/job/failure.h"
#include "common/looptree/actions/action.h"
#include "common/looptree/tree/loop_tree.h"

namespace loopfleet::worker {

struct FoundSchedule {
  std::string actions;
  double ns = 0;
  int tried = 0;
  int failed = 0;  // schedules refused, wrong, or not timed
};

// `time_tree` verifies a tree and returns the nanoseconds of one run. If no schedule was timed,
// returns the first failure.
std::expected<FoundSchedule, Failure> SearchSchedule(
    int size, std::uint64_t seed, std::chrono::seconds budget,
    const std::function<std::expected<double, Failure>(const looptree::LoopTree&)>& time_tree);

}  // namespace loopfleet::worker
