// The loop-tree language inside an RL loop: the cost of an agent's step without a cluster, beside
// the original's recorded cost, and the time that `loopfleet replay` takes for the slowest of 10^5
// hostile lines. One thread, no I/O.

#include "client/cli/commands/replay.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "bench/rigs/result_line.h"
#include "bench/rigs/stopwatch.h"
#include "common/base/check.h"
#include "common/base/quantile.h"
#include "common/base/random.h"
#include "common/looptree/actions/walk.h"
#include "common/looptree/features/features.h"
#include "common/looptree/tree/key.h"
#include "tests/unit/client/cli/commands/hostile_line.h"

namespace loopfleet::bench {
namespace {

using looptree::Action;
using looptree::AgentWalk;
using looptree::Benchmark;
using looptree::RuleSet;
using Clock = std::chrono::steady_clock;

constexpr char kPeer[] = "loop_tool ddebea5, recorded in docs";
constexpr char kUri[] = "benchmark://mm64_256_16_range-v0/mm256_256_256";
constexpr std::size_t kWalkActions = 22;
constexpr int kWalks = 400;
constexpr int kHostileLines = 100'000;

// Processor time of this thread: unlike wall time, it excludes the work of other threads.
double ThreadMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

Benchmark Opened() {
  auto benchmark = looptree::OpenBenchmark(looptree::BenchmarkUri{kUri});
  LF_CHECK(benchmark.has_value(), "{}", benchmark.error().message);
  return *std::move(benchmark);
}

// The default action space of the original.
std::vector<Action> Space() {
  const auto space = looptree::ParseActionList(
      "down,dummy,merge,split_128,split_16,split_2,split_256,split_32,split_4,split_5,split_64,"
      "split_8,swap_down,swap_up,unroll,up");
  LF_CHECK(space.has_value(), "{}", space.error().message);
  return *space;
}

// Seeded walks of legal actions under the original's rules: all of kWalkActions actions, or cycling
// through every length up to that.
enum class Lengths { kAllFull, kEach };
std::vector<AgentWalk> Walks(Lengths lengths) {
  SplitMix64 random(22);
  const Benchmark benchmark = Opened();
  const std::vector<Action> space = Space();
  std::vector<AgentWalk> walks;
  while (walks.size() < kWalks) {
    const std::size_t actions =
        lengths == Lengths::kEach ? walks.size() % (kWalkActions + 1) : kWalkActions;
    AgentWalk& walk = walks.emplace_back(benchmark, RuleSet::kLoopNest);
    while (walk.history().size() < actions) {
      static_cast<void>(walk.Apply(space[random.Below(space.size())]));
    }
  }
  return walks;
}

struct Case {
  std::string name;
  double peer_microseconds;  // 0: no peer figure
  double goal_microseconds;  // 0: none
};

// Times one(walk) on each walk, `batch` times in a row where one run is too short for the clock.
template <class One>
void Measure(const Case& what, const std::vector<AgentWalk>& walks, int batch, One one) {
  std::vector<double> times;
  for (int round = 0; round < 5; ++round) {
    for (const AgentWalk& walk : walks) {
      const auto start = Clock::now();
      for (int i = 0; i < batch; ++i) one(walk);
      times.push_back(Since<std::micro>(start) / batch);
    }
  }
  ResultLine line{.bench = "replay",
                  .name = what.name,
                  .value = Quantile(times, 0.5),
                  .unit = "us",
                  .peer = "",
                  .peer_value = {},
                  .details = {{"p99", Quantile(times, 0.99)}, {"samples", times.size()}}};
  if (what.peer_microseconds > 0) {
    line.peer = kPeer;
    line.peer_value = what.peer_microseconds;
  }
  if (what.goal_microseconds > 0) line.details["goal"] = what.goal_microseconds;
  Print(line);
}

volatile std::size_t g_sink = 0;  // keeps results from being optimised away

void MeasureLanguage() {
  const std::vector<AgentWalk> walks = Walks(Lengths::kEach);
  const std::vector<Action> space = Space();
  Measure({"replay of 22 actions, from the URI, median", 2100, 40}, Walks(Lengths::kAllFull), 1,
          [](const AgentWalk& walk) {
            const auto replayed = looptree::Replay(looptree::BenchmarkUri{kUri}, walk.history(),
                                                   {.rules = RuleSet::kLoopNest});
            LF_CHECK(replayed.has_value(), "{}", replayed.error().message);
            g_sink = replayed->tree.nodes().size();
          });
  Measure({"legality of 16 actions, median", 1800, 40}, walks, 1, [&](const AgentWalk& walk) {
    for (const Action& action : space) g_sink = walk.IsLegal(action);
  });
  Measure({"loops_tensor, 20 floats a loop, median", 0, 10}, walks, 1, [](const AgentWalk& walk) {
    g_sink =
        looptree::LoopsTensor(walk.tree(), walk.cursor(), looptree::FeatureLayout::kAgent20).size();
  });
  Measure({"tree_key, median", 0, 0}, walks, 1,
          [](const AgentWalk& walk) { g_sink = looptree::KeyOf(walk.tree()).bytes[0]; });

  // Moves and undoes on one walk, so that its history keeps its length.
  std::vector<AgentWalk> moving = walks;
  std::size_t at = 0;
  Measure({"a cursor move and its undo, median", 0, 0}, walks, 16, [&](const AgentWalk&) {
    AgentWalk& walk = moving[at++ / 16 % moving.size()];
    const auto* const nodes = walk.tree().nodes().data();
    if (!walk.Apply(looptree::Down{}) && !walk.Apply(looptree::Up{})) return;
    LF_CHECK(walk.tree().nodes().data() == nodes, "a cursor move rebuilt the tree");
    LF_CHECK(walk.Apply(looptree::Undo{}).has_value(), "undo");
  });
}

void MeasureHostileLines() {
  client::HostileLines lines(1);
  std::vector<double> times;
  std::map<std::string, double> slowest;
  for (int i = 0; i < kHostileLines; ++i) {
    const auto line = lines.Next();
    std::istringstream in(line.text);
    std::ostringstream out;
    const double start = ThreadMilliseconds();
    client::RunReplay(in, out);
    times.push_back(ThreadMilliseconds() - start);
    double& most = slowest[std::string(line.kind)];
    most = std::max(most, times.back());
  }
  Print({.bench = "replay",
         .name = "a hostile line of `loopfleet replay`, processor time, slowest of 100,000",
         .value = Quantile(times, 1),
         .unit = "ms",
         .peer = "",
         .peer_value = {},
         .details = {{"goal", 10},
                     {"median", Quantile(times, 0.5)},
                     {"p99.9", Quantile(times, 0.999)},
                     {"slowest_by_kind", slowest}}});
}

}  // namespace
}  // namespace loopfleet::bench

int main() {
  loopfleet::bench::MeasureLanguage();
  loopfleet::bench::MeasureHostileLines();
}
