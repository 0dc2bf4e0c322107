#include "coordinator/page/fleet_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/quantile.h"
#include "common/fleet/attention.h"
#include "common/fleet/fleet_json.h"
#include "coordinator/shell/storage_queries.h"

namespace loopfleet::coordinator {
namespace {

using wire::WorkerInfo;
using wire::WorkerState;

constexpr std::size_t kMaxBest = 50;

double Milliseconds(Nanos duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// Null if there are no values.
Json QuantileJson(const std::vector<double>& values, double share) {
  return values.empty() ? Json(nullptr) : Json(Quantile(values, share));
}

struct Failures {
  std::size_t count = 0;
  const storage::BriefOutcome* newest = nullptr;
};

Json FailuresJson(const std::map<FailureCode, Failures>& failures) {
  std::vector<std::pair<FailureCode, Failures>> sorted(failures.begin(), failures.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{},
                           [](const auto& entry) { return entry.second.count; });
  Json array = Json::array();
  for (const auto& [code, of] : sorted) {
    const storage::BriefOutcome& newest = *of.newest;
    array.push_back({{"code", InfoOf(code).name},
                     {"jobs", of.count},
                     {"advice", InfoOf(code).advice},
                     {"newest",
                      {{"job", fmt::format("{}", newest.job)},
                       {"message", newest.failure->message},
                       {"finished_at_ms", EpochMs(newest.finished_at)}}}});
  }
  return array;
}

struct Best {
  std::size_t outcomes = 0;
  const storage::BriefOutcome* fastest = nullptr;
  double untuned_gflop_per_second = 0;  // 0: none among the outcomes

  double SpeedUp() const {
    return untuned_gflop_per_second > 0
               ? fastest->figures->gflop_per_second / untuned_gflop_per_second
               : 0;
  }
};
using BestByBenchmark = std::map<std::pair<std::string, std::string>, Best>;

Json BestJson(const BestByBenchmark& best) {
  std::vector<const BestByBenchmark::value_type*> order;
  order.reserve(best.size());
  for (const auto& entry : best) order.push_back(&entry);
  std::ranges::stable_sort(order, std::greater{},
                           [](const auto* entry) { return entry->second.SpeedUp(); });
  if (order.size() > kMaxBest) order.resize(kMaxBest);
  Json array = Json::array();
  for (const auto* entry : order) {
    const auto& [key, of] = *entry;
    const storage::BriefOutcome& fastest = *of.fastest;
    array.push_back(
        {{"benchmark", key.first},
         {"hardware_class", key.second},
         {"gflop_per_second", fastest.figures->gflop_per_second},
         {"untuned_gflop_per_second",
          of.untuned_gflop_per_second > 0 ? Json(of.untuned_gflop_per_second) : Json(nullptr)},
         {"elapsed_ns", fastest.figures->elapsed_ns},
         {"grade", fastest.figures->grade},
         {"actions", fastest.actions},
         {"job", fmt::format("{}", fastest.job)},
         {"outcomes", of.outcomes}});
  }
  return array;
}

struct Noise {
  std::vector<double> spreads;
  std::vector<double> measure_ms;
  std::map<std::string, std::size_t> grades;
};

Json NoiseJson(const Noise& noise) {
  return {{"measured", noise.spreads.size()},
          {"spread", QuantileJson(noise.spreads, 0.5)},
          {"measure_ms", QuantileJson(noise.measure_ms, 0.5)},
          {"grades", noise.grades}};
}

// The workers of one hardware class.
struct Pool {
  const WorkerInfo* example = nullptr;
  std::size_t ready = 0, busy = 0, draining = 0, quarantined = 0, lost = 0, leased = 0;
  std::set<std::string> reasons;  // why some take no jobs
};

std::map<std::string, Pool> PoolsOf(const FleetModel& fleet) {
  constexpr std::size_t kMaxReasons = 3;
  std::map<std::string, Pool> pools;
  for (const WorkerInfo& worker : fleet.workers) {
    Pool& pool = pools[worker.hardware.hardware_class];
    if (pool.example == nullptr) pool.example = &worker;
    pool.leased += worker.leased_jobs;
    switch (worker.state) {
      case WorkerState::kReady:
        ++pool.ready;
        if (worker.leased_jobs > 0) ++pool.busy;
        break;
      case WorkerState::kDraining: ++pool.draining; break;
      case WorkerState::kQuarantined: ++pool.quarantined; break;
      case WorkerState::kLost: ++pool.lost; break;
    }
    const std::string why = worker.state == WorkerState::kReady ? "" : WhyLimited(worker);
    if (!why.empty() && pool.reasons.size() < kMaxReasons) {
      pool.reasons.insert(fmt::format("{} {}", worker.name, why));
    }
  }
  return pools;
}

std::size_t QueuedFor(const FleetModel& fleet, DeviceKind device) {
  return fleet.Queued(device == DeviceKind::kCpu ? Placement::kCpu : Placement::kCuda) +
         fleet.Queued(Placement::kAny);
}

// Why workers of the pool are idle; empty if none is.
std::string WhyIdle(const FleetSnapshot& snapshot, const Pool& pool) {
  if (pool.ready == 0) {
    return pool.draining + pool.quarantined > 0 ? "none of them takes jobs now" : "all are lost";
  }
  if (pool.busy == pool.ready) return {};
  if (snapshot.fleet.is_stopping) return "the coordinator is shutting down";
  if (snapshot.returning_ms > 0) return "the coordinator waits for its workers to come back";
  const FleetModel& fleet = snapshot.fleet;
  if (QueuedFor(fleet, pool.example->hardware.device) == 0) return "nothing is queued for it";
  const std::vector<std::string>& unserved = fleet.unserved_reasons;
  if (!unserved.empty()) return unserved.front();
  return "its turn is next, or the queued jobs want other labels or threads";
}

Json PoolsJson(const FleetFacts& facts) {
  Json array = Json::array();
  for (const auto& [hardware_class, pool] : PoolsOf(facts.snapshot.fleet)) {
    const auto noise = facts.digest.pools.find(hardware_class);
    const std::string idle = WhyIdle(facts.snapshot, pool);
    array.push_back({{"class", hardware_class},
                     {"device", EnumName(pool.example->hardware.device)},
                     {"model", pool.example->hardware.model},
                     {"isa", pool.example->hardware.isa},
                     {"ready", pool.ready},
                     {"busy", pool.busy},
                     {"draining", pool.draining},
                     {"quarantined", pool.quarantined},
                     {"lost", pool.lost},
                     {"leased_jobs", pool.leased},
                     {"queued", QueuedFor(facts.snapshot.fleet, pool.example->hardware.device)},
                     {"why_idle", idle.empty() ? Json(nullptr) : Json(idle)},
                     {"why_out", pool.reasons},
                     {"noise", noise == facts.digest.pools.end() ? Json(nullptr) : *noise}});
  }
  return array;
}

Json HealthJson(const wire::FleetHealth& health) {
  constexpr std::array kStates = {"ok", "warning", "bad"};  // by Severity
  const auto link_of = [](const wire::Attention& item) {
    const AttentionInfo* info = FindAttention(item.kind);
    return info == nullptr ? "" : info->screen;
  };
  Json attention = AttentionJson(health.attention);
  for (std::size_t i = 0; i < attention.size(); ++i) {
    attention[i]["link"] = link_of(health.attention[i]);
  }
  const bool is_well = health.level() == wire::Severity::kNotice;
  return {{"state", kStates.at(static_cast<std::size_t>(health.level()))},
          {"sentence", health.sentence},
          {"link", is_well ? "" : link_of(health.attention[0])},
          {"attention", std::move(attention)}};
}

Json HistoryJson(const JobSteps& steps) {
  Json finished = Json::array();
  Json failed = Json::array();
  for (const JobSteps::Step& step : steps.steps()) {
    finished.push_back(step.finished);
    failed.push_back(step.failed);
  }
  return {{"step_s", JobSteps::kStep.count()},
          {"steps", JobSteps::kSteps},
          {"end_ms", EpochMs(steps.end())},
          {"finished", std::move(finished)},
          {"failed", std::move(failed)}};
}

Json CardsJson(const FleetFacts& facts) {
  const FleetSnapshot& snapshot = facts.snapshot;
  const FleetModel& fleet = snapshot.fleet;
  const std::size_t lost = fleet.Workers(WorkerState::kLost);
  const double rate = facts.history.JobsPerSecond();
  const std::size_t left = fleet.Queued() + fleet.leased;
  return {{"jobs_per_second", rate},
          {"queued", fleet.Queued()},
          {"leased", fleet.leased},
          {"eta_s", left > 0 && rate > 0 ? Json(static_cast<double>(left) / rate) : Json(nullptr)},
          {"workers_ready", fleet.Workers(WorkerState::kReady)},
          {"workers", fleet.workers.size() - lost},
          {"workers_lost", lost},
          {"finished_5m", fleet.recently_finished},
          {"failed_5m", fleet.recently_failed},
          {"turnaround", facts.digest.turnaround},
          {"accepted_since_start", snapshot.tally.accepted()},
          {"finished_since_start", snapshot.tally.finished()},
          {"from_store_since_start", snapshot.tally.from_store()}};
}

}  // namespace

OutcomeDigest Digest(const storage::BriefOutcomes& found) {
  const std::vector<storage::BriefOutcome>& outcomes = found.outcomes;
  OutcomeDigest digest{.outcomes = outcomes.size(), .is_all = found.is_all};
  std::map<FailureCode, Failures> failures;
  BestByBenchmark best;
  std::map<std::string, Noise> workers;
  std::map<std::string, Noise> pools;
  std::vector<double> took;
  took.reserve(outcomes.size());
  for (const storage::BriefOutcome& outcome : outcomes) {
    took.push_back(Milliseconds(outcome.took));
    if (outcome.failure) {
      Failures& of = failures[outcome.failure->code];
      ++of.count;
      if (of.newest == nullptr || of.newest->finished_at < outcome.finished_at) {
        of.newest = &outcome;
      }
      continue;
    }
    if (outcome.is_observed) {
      Json values = Json::parse(outcome.observed, nullptr, /*allow_exceptions=*/false);
      if (values.is_discarded()) continue;  // not of a probe, or damaged
      Json& newest = digest.observed[outcome.worker][outcome.benchmark];
      if (newest.is_null()) newest = std::move(values);  // the newest come first
      continue;
    }
    const storage::BriefOutcome::Figures& figures = *outcome.figures;
    if (outcome.is_measured) {
      for (Noise* noise : {&workers[outcome.worker], &pools[outcome.hardware_class]}) {
        noise->spreads.push_back(figures.spread);
        noise->measure_ms.push_back(Milliseconds(outcome.measure));
        ++noise->grades[figures.grade];
      }
    }
    if (figures.is_suspect || outcome.benchmark.empty()) continue;
    Best& of = best[{outcome.benchmark, outcome.hardware_class}];
    ++of.outcomes;
    if (of.fastest == nullptr || of.fastest->figures->gflop_per_second < figures.gflop_per_second) {
      of.fastest = &outcome;
    }
    if (outcome.actions.empty()) {
      of.untuned_gflop_per_second = std::max(of.untuned_gflop_per_second, figures.gflop_per_second);
    }
  }
  digest.failures = FailuresJson(failures);
  digest.best = BestJson(best);
  digest.benchmarks = best.size();
  for (auto& [name, noise] : workers) digest.by_worker[name] = NoiseJson(noise);
  for (auto& [name, noise] : pools) digest.pools[name] = NoiseJson(noise);
  digest.turnaround = {{"p50_ms", QuantileJson(took, 0.5)}, {"p99_ms", QuantileJson(took, 0.99)}};
  return digest;
}

Json BatchViewJson(const storage::StoredBatch& batch, const FleetHistory& history) {
  Json json = BatchJson(BatchInfoOf(batch));
  json["submitted_at_ms"] = EpochMs(batch.accepted_at);
  json["by"] = history.NameOf(batch.client);
  const auto rate = history.JobsPerSecond(batch.batch);
  const std::uint32_t left = batch.job_count - batch.finished;
  json["jobs_per_second"] = rate && left > 0 ? Json(*rate) : Json(nullptr);
  json["eta_s"] = rate && *rate > 0 && left > 0 ? Json(left / *rate) : Json(nullptr);
  return json;
}

Json OverviewJson(const FleetFacts& facts) {
  const FleetSnapshot& snapshot = facts.snapshot;
  Json drains = Json::array();
  for (const wire::Drain& drain : snapshot.drains) drains.push_back(DrainJson(drain));
  Json batches = Json::array();
  for (const storage::StoredBatch& batch : facts.batches) {
    batches.push_back(BatchViewJson(batch, facts.history));
  }
  return {{"at_ms", EpochMs(snapshot.at.wall)},
          {"version", facts.version},
          {"coordinator", snapshot.coordinator},
          {"epoch", snapshot.fleet.epoch},
          {"health", HealthJson(facts.health)},
          {"cards", CardsJson(facts)},
          {"history", HistoryJson(snapshot.steps)},
          {"queued",
           {{"cpu", snapshot.fleet.Queued(Placement::kCpu)},
            {"cuda", snapshot.fleet.Queued(Placement::kCuda)},
            {"any", snapshot.fleet.Queued(Placement::kAny)}}},
          {"pools", PoolsJson(facts)},
          {"drains", std::move(drains)},
          {"batches", std::move(batches)},
          {"failures", facts.digest.failures},
          {"best", facts.digest.best},
          {"looked_at",
           {{"outcomes", facts.digest.outcomes},
            {"all", facts.digest.is_all},
            {"benchmarks", facts.digest.benchmarks}}}};
}

}  // namespace loopfleet::coordinator
