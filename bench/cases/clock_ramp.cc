// How figures stand a clock that changes while they are taken. No host lets its clock be set, so
// the sampler and the rounds, as workers run them, time scripted kernels on a scripted core
// (tests/support/scripted_core): 0.5 % of random scatter, and a clock that rises or falls by up to
// a quarter within 0.2 to 300 ms, from before the first round or in the middle of all. The truth is
// known: the time at the reference clock.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "bench/rigs/result_line.h"
#include "common/base/enum_names.h"
#include "common/base/quantile.h"
#include "common/base/random.h"
#include "tests/support/scripted_core/scripted_core.h"
#include "worker/timing/measurement_rounds.h"

namespace loopfleet::bench {
namespace {

using worker::MeasurementRounds;
using worker::ScriptedCore;
using Json = nlohmann::ordered_json;

constexpr double kReferenceMhz = 3000;
constexpr double kScatter = 0.005;  // everything is so much slower at most, at random
constexpr int kOfEach = 50;         // kernels of each combination

struct Ramp {
  double change = 0;  // of the clock, relative; below 0: it falls
  double ms = 0;      // how long that takes
  double starts_ms = 0;
};

// The figure of one kernel.
Measurement Measure(std::uint64_t run_ns, const Ramp& ramp, SplitMix64& random) {
  ScriptedCore core;
  core.run_ns = run_ns;
  const double begins = static_cast<double>(core.now) + ramp.starts_ms * 1e6;
  core.clock_mhz = [=](std::uint64_t now) {
    const double share = (static_cast<double>(now) - begins) / (ramp.ms * 1e6);
    return kReferenceMhz * (1 + ramp.change * std::clamp(share, 0.0, 1.0));
  };
  core.slowdown = [seed = random.Next()](std::uint64_t now) {
    constexpr std::uint64_t kMomentNs = 20'000;
    SplitMix64 moment(seed + now / kMomentNs);
    return 1 + kScatter * static_cast<double>(moment.Below(1'000)) / 1'000;
  };
  const JobSpec spec;
  MeasurementRounds::Options options{.moments_apart = 0.009};
  options.expects_long_runs = run_ns >= static_cast<std::uint64_t>(options.first_wait.count());
  MeasurementRounds rounds(spec, options);
  while (true) {
    worker::SamplingPolicy policy = rounds.NextPolicy();
    policy.reference_mhz = kReferenceMhz;
    policy.quiet_cycles = 9'000;
    rounds.Add(core.Take(policy), kReferenceMhz);
    const auto next = rounds.NextIn();
    if (!next) return rounds.Summarise(kReferenceMhz);
    core.now += static_cast<std::uint64_t>(next->count());
  }
}

struct Seen {
  std::vector<double> off;  // relative to the truth
  std::uint64_t held = 0;   // intervals that hold it
  std::map<std::string, std::uint64_t> grades;
};

void Add(std::uint64_t run_ns, const Measurement& figure, Seen& seen) {
  const double truth = static_cast<double>(run_ns) * (1 + kScatter / 2);
  seen.off.push_back(std::abs(figure.elapsed_ns / truth - 1));
  if (figure.elapsed_low_ns <= truth && truth <= figure.elapsed_high_ns) ++seen.held;
  ++seen.grades[std::string(EnumName(figure.grade))];
}

void Report(const std::string& name, const Seen& seen, const Seen& steady) {
  const auto share = [](const Seen& of) {
    return static_cast<double>(of.held) / static_cast<double>(of.off.size());
  };
  Json grades = Json::object();
  for (const auto& [grade, count] : seen.grades) {
    grades[grade] = static_cast<double>(count) / static_cast<double>(seen.off.size());
  }
  Print({.bench = "clock_ramp",
         .name = name,
         .value = share(seen),
         .unit = "share of intervals that hold the truth",
         .peer = "a steady clock",
         .peer_value = share(steady),
         .details = {{"figures", seen.off.size()},
                     {"off_p50", Quantile(seen.off, 0.5)},
                     {"off_p95", Quantile(seen.off, 0.95)},
                     {"off_max", Quantile(seen.off, 1)},
                     {"grades", grades}}});
}

void Run() {
  constexpr std::array<std::uint64_t, 4> kRuns = {2'000, 50'000, 800'000, 8'000'000};
  constexpr std::array kLengths = {0.2, 2.0, 20.0, 300.0};
  constexpr std::array kStarts = {-1.0, 0.1, 3.0};
  SplitMix64 random(23);
  Seen steady;
  for (const std::uint64_t run_ns : kRuns) {
    for (int i = 0; i < kOfEach; ++i) Add(run_ns, Measure(run_ns, {.ms = 1}, random), steady);
  }
  Report("the clock is steady", steady, steady);
  for (const double change : {0.01, 0.05, 0.25, -0.01, -0.05, -0.2}) {
    Seen seen;
    for (const std::uint64_t run_ns : kRuns) {
      for (const double ms : kLengths) {
        for (const double starts_ms : kStarts) {
          for (int i = 0; i < kOfEach; ++i) {
            const Ramp ramp{.change = change, .ms = ms, .starts_ms = starts_ms};
            Add(run_ns, Measure(run_ns, ramp, random), seen);
          }
        }
      }
    }
    Report(fmt::format("the clock {} by {:.0f} %", change > 0 ? "rises" : "falls",
                       100 * std::abs(change)),
           seen, steady);
  }
}

}  // namespace
}  // namespace loopfleet::bench

int main() { loopfleet::bench::Run(); }
