#include "bench/rigs/contest.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace loopfleet::bench {
namespace {

constexpr int kMostRuns = 1'000'000;
constexpr Nanos kPatience = std::chrono::milliseconds(50);

}  // namespace

Contestant InProcess(std::string name, std::function<void()> run) {
  return {.name = std::move(name), .time = [run = std::move(run)](int runs) {
            const auto start = std::chrono::steady_clock::now();
            for (int i = 0; i < runs; ++i) run();
            const std::chrono::duration<double, std::nano> elapsed =
                std::chrono::steady_clock::now() - start;
            return elapsed.count() / runs;
          }};
}

std::vector<Standing> Compete(const std::vector<Contestant>& contestants,
                              const ContestOptions& options) {
  const auto batch_ns = static_cast<double>(options.batch.count());
  std::vector<int> runs;
  std::vector<std::vector<double>> times(contestants.size());
  for (const Contestant& contestant : contestants) {
    contestant.time(1);  // warms pages, code and predictors
    const double once = std::min(contestant.time(3), contestant.time(3));
    runs.push_back(static_cast<int>(
        std::clamp(std::ceil(batch_ns / once), 1.0, static_cast<double>(kMostRuns))));
  }
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      if (options.core != nullptr) options.core->Await(kPatience);
      times[i].push_back(contestants[i].time(runs[i]));
    }
  }
  std::vector<Standing> standings;
  for (std::vector<double>& each : times) {
    std::ranges::sort(each);
    standings.push_back({.median_ns = each[each.size() / 2], .best_ns = each.front()});
  }
  return standings;
}

}  // namespace loopfleet::bench
