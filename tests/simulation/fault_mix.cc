#include "tests/simulation/fault_mix.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/dice.h"

namespace loopfleet::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct FaultInfo {
  std::string_view name;
  double most;  // maximum rate
};
// Rates are per occasion: a message, a run, a request, or a second in the life of the coordinator,
// the disk or a worker.
constexpr std::array<FaultInfo, kFaults> kFaultTable = {{
    {"lose", 0.1},
    {"duplicate", 0.2},
    {"delay", 0.1},
    {"cut", 0.03},
    {"partition", 0.05},
    {"corrupt", 0.05},
    {"kill_coordinator", 0.4},
    {"stop_coordinator", 0.15},
    {"freeze_coordinator", 0.15},
    {"slow_disk", 0.5},
    {"full_disk", 0.3},
    {"fail_disk", 0.02},
    {"kill_worker", 0.15},
    {"freeze_worker", 0.15},
    {"drain_worker", 0.1},
    {"operator", 0.2},
    {"drift_worker", 0.1},
    {"flaky_device", 0.2},
    {"noise", 0.3},
    {"lie", 0.2},
    {"vanish", 0.15},
    {"repeat", 0.4},
    {"conflict", 0.3},
    {"stranger", 0.5},
    {"cancel", 0.3},
    {"clock_jump", 0.3},
}};

}  // namespace

std::string_view FaultName(Fault fault) {
  return kFaultTable[static_cast<std::size_t>(fault)].name;
}

std::optional<Fault> ParseFault(std::string_view name) {
  for (std::size_t i = 0; i < kFaults; ++i) {
    if (kFaultTable[i].name == name) return static_cast<Fault>(i);
  }
  return std::nullopt;
}

bool FaultMix::has_faults() const {
  return std::ranges::any_of(rates, [](double rate) { return rate > 0; });
}

namespace {

// In 2 % of the worlds, many plain jobs of several clients share one worker, so that the order of
// dispatch shows.
void DrawCrowd(std::uint64_t seed, FaultMix& mix) {
  Dice dice(seed, 21);
  if (!dice.Chance(0.02)) return;
  mix.clients = std::max<decltype(mix.clients)>(mix.clients, 2);
  mix.workers = 1;
  mix.cuda_workers = 0;
  mix.most_jobs = 24;
  mix.fresh = 1;
  mix.invalid = mix.poison = mix.hang = mix.crash = 0;
  mix.labelled = mix.bound = mix.hurried = 0;
  mix.longest_run = milliseconds(50);
  mix.labelled_workers = 0;
  mix.limits.max_unfinished_jobs = coordinator::Limits{}.max_unfinished_jobs;
}

// In 4 % of the worlds, workers drift permanently and run jobs that no other worker could run.
void DrawDrifts(std::uint64_t seed, FaultMix& mix) {
  Dice dice(seed, 22);
  if (!dice.Chance(0.04)) return;
  mix.drifts_stay = true;
  mix[Fault::kDriftWorker] = 0.1;
  mix.workers = dice.Between(1, 2);
  mix.cuda_workers = std::min(mix.cuda_workers, mix.workers);
  mix.labelled_workers = std::min(mix.labelled_workers, mix.workers);
  mix.faults_last = seconds(dice.Between(10, 30));
}

// In 2 % of the worlds, most of many workers are idle beside jobs that only two of them may run, so
// that going through all of them shows (cost_rules.h).
void DrawIdleFleet(std::uint64_t seed, FaultMix& mix) {
  Dice dice(seed, 24);
  if (mix.drifts_stay || !dice.Chance(0.02)) return;
  mix.workers = 40;
  mix.labelled_workers = 2;
  mix.labelled = 0.9;
  mix.bound = mix.prioritised = 0;
  mix.most_jobs = 24;
  mix.fresh = 1;
  mix[Fault::kNoise] = 0.3;
  mix.limits.max_unfinished_jobs = coordinator::Limits{}.max_unfinished_jobs;
}

// A limit so low that even small batches end in several pieces.
void DrawPieces(std::uint64_t seed, FaultMix& mix) {
  Dice dice(seed, 23);
  if (dice.Chance(0.7)) mix.limits.max_endings_per_event = dice.Between(1U, 3U);
}

}  // namespace

FaultMix FaultMix::Draw(std::uint64_t seed) {
  Dice dice(seed, 0);
  FaultMix mix;
  const double density = dice.Chance(0.06) ? 0 : dice.Chance(0.5) ? 0.15 : 0.4;
  for (std::size_t i = 0; i < kFaults; ++i) {
    if (!dice.Chance(density)) continue;
    mix.rates[i] = kFaultTable[i].most * static_cast<double>(dice.Between(1, 10)) / 10;
  }
  if (dice.Chance(0.1)) mix.bytes = Bytes::kEncoded;
  if (dice.Chance(0.02)) mix.medium = Medium::kSqlite;
  if (mix.bytes == Bytes::kValues) mix[Fault::kCorrupt] = 0;
  mix.checks_core = dice.Chance(0.1);
  mix.clients = dice.Between(1, 3);
  mix.workers = dice.Between(1, 4);
  mix.cuda_workers = dice.Chance(0.3) ? 1 : 0;
  mix.most_credit = dice.Between(1, 4);
  mix.batches_per_client = dice.Between(1, 3);
  mix.most_messages = dice.Chance(0.5) ? 1 : dice.Between(2, 4);
  mix.most_jobs = dice.Between(1, 6);
  mix.trees = dice.Between(1, 12);
  if (dice.Chance(0.25)) mix.poison = 0.2;
  if (dice.Chance(0.25)) mix.hang = 0.2;
  if (dice.Chance(0.25)) mix.crash = 0.2;
  if (dice.Chance(0.4)) mix.invalid = 0.2;
  if (dice.Chance(0.4)) mix.fresh = 0.3;
  mix.longest_run = milliseconds(dice.Chance(0.5) ? 50 : dice.Chance(0.5) ? 800 : 5000);
  mix.latency = microseconds(dice.Between(20, 2000));
  mix.jitter = dice.Chance(0.5) ? Nanos{0} : Nanos(milliseconds(dice.Between(1, 300)));
  mix.commit_time = microseconds(dice.Between(100, 20'000));
  mix.tick = milliseconds(50 * dice.Between(1, 4));
  mix.faults_last = mix.has_faults() ? seconds(dice.Between(2, 15)) : seconds(0);
  mix.limits.no_worker_grace = seconds(dice.Between(5, 30));
  mix.limits.open_batch_idle = std::chrono::seconds(300);
  if (dice.Chance(0.3)) mix.limits.max_unfinished_jobs = dice.Between(6U, 16U);
  if (dice.Chance(0.3)) mix.limits.max_undurable_outcomes = dice.Between(1U, 4U);
  if (dice.Chance(0.2)) mix.limits.max_held_appends = 1;
  if (dice.Chance(0.1)) mix.limits.max_unfinished_batches = 2;
  if (dice.Chance(0.1)) mix.limits.max_waiters_per_client = 1;
  if (dice.Chance(0.4)) mix.prioritised = 0.5;
  if (dice.Chance(0.3)) mix.labelled = 0.3;
  // Without a labelled worker, jobs end with NO_MATCHING_WORKER. Rare, because the grace is long.
  mix.labelled_workers = dice.Chance(0.05) ? 0 : dice.Between(std::size_t{1}, mix.workers);
  if (dice.Chance(0.3)) mix.bound = dice.Chance(0.5) ? 0.3 : 0.9;
  // The affinity rules do not model operators, whose drains move affinities to other workers.
  if (mix.bound > 0) mix[Fault::kOperator] = 0;
  mix.affinities = dice.Between(1, 3);
  if (dice.Chance(0.3)) mix.hurried = 0.4;
  mix.longest_deadline_s = dice.Between(1, 20);
  DrawCrowd(seed, mix);
  DrawDrifts(seed, mix);
  DrawPieces(seed, mix);
  DrawIdleFleet(seed, mix);
  return mix;
}

std::string FaultMix::Describe() const {
  std::string text = fmt::format(
      "{} clients, {} workers ({} cuda), credit {}, {} trees, {}{}", clients, workers, cuda_workers,
      most_credit, trees, bytes == Bytes::kEncoded ? "encoded messages" : "plain messages",
      medium == Medium::kSqlite ? ", SQLite on a disk that crashes" : "");
  for (std::size_t i = 0; i < kFaults; ++i) {
    if (rates[i] > 0) text += fmt::format(", {} {:.3g}", kFaultTable[i].name, rates[i]);
  }
  return text;
}

}  // namespace loopfleet::simulation
