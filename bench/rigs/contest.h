#pragma once
// Contest: several ways to do the same, timed in turns in one process, so that whatever slows the
// machine down slows all of them down.

#include <functional>
#include <string>
#include <vector>

#include "bench/rigs/quiet_core.h"
#include "common/base/clock.h"

namespace loopfleet::bench {

struct Contestant {
  std::string name;
  // Does the work `runs` times and gives the nanoseconds that one took.
  std::function<double(int runs)> time;
};
// A contestant that is a function in this process.
Contestant InProcess(std::string name, std::function<void()> run);

struct Standing {
  double median_ns = 0;  // over the rounds
  double best_ns = 0;
};
struct ContestOptions {
  int rounds = 25;
  Nanos batch = std::chrono::milliseconds(2);  // of each contestant in each round
  QuietCore* core = nullptr;  // a quiet moment of it is waited for before each batch; null: none is
};
// In the order of the contestants.
std::vector<Standing> Compete(const std::vector<Contestant>& contestants,
                              const ContestOptions& options = {});

}  // namespace loopfleet::bench
