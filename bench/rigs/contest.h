#pragma once
// Contest: several ways to do the same work, timed in turns from one process, so that whatever
// slows the machine slows all of them.

#include <functional>
#include <string>
#include <vector>

#include "bench/rigs/quiet_core.h"
#include "common/base/clock.h"

namespace loopfleet::bench {

struct Contestant {
  std::string name;
  // Does the work `runs` times; returns the nanoseconds of one run.
  std::function<double(int runs)> time;
};
// A contestant that is a function in this process.
Contestant InProcess(std::string name, std::function<void()> run);

struct Standing {
  double median_ns = 0;  // over all rounds
  double best_ns = 0;
};
struct ContestOptions {
  int rounds = 25;
  Nanos batch = std::chrono::milliseconds(2);  // of each contestant in each round
  QuietCore* core = nullptr;                   // awaited before each batch; null: no waiting
};
// In the order of the contestants.
std::vector<Standing> Compete(const std::vector<Contestant>& contestants,
                              const ContestOptions& options = {});

}  // namespace loopfleet::bench
