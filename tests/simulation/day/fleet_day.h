#pragma once
// FleetDay: 24 hours of a fleet in virtual time: the real core and the real conversation of the
// workers, a load that follows the sun, and workers that an autoscaler starts and drains.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "tests/simulation/day/autoscaler.h"

namespace loopfleet::simulation {

struct FleetPlan {
  std::string name;
  std::uint64_t seed = 1;
  Autoscaler::Rule rule;
  Nanos shortest_start{};  // from the wish for a worker to its hello
  Nanos longest_start{};
  // Of a worker, as in Slurm; 0: none. It drains 120 s before, and its successor is asked for
  // before that by the longest start.
  Nanos time_limit{};
  double killed_per_hour = 0;  // share of workers whose machine is lost
};

struct DayReport {
  std::uint64_t jobs = 0;
  std::uint64_t most_waiting = 0;
  double mean_wait_s = 0;  // from being accepted to being stored
  double longest_wait_s = 0;
  std::uint64_t workers_started = 0;
  std::uint64_t workers_killed = 0;
  std::uint64_t most_workers = 0;  // at one time
  double worker_hours = 0;         // from a worker's hello to its end
  double busy_hours = 0;           // of them, running jobs
  std::vector<std::string> wrong;  // promises that were broken
};

DayReport RunFleetDay(const FleetPlan& plan);

}  // namespace loopfleet::simulation
