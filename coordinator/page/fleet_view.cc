#include "coordinator/page/fleet_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/wire/codec/fleet_json.h"
#include "coordinator/shell/storage_queries.h"

namespace loopfleet::coordinator {
namespace {

using wire::WorkerInfo;
using wire::WorkerState;

constexpr std::size_t kMaxBest = 50;
constexpr std::size_t kStepsIn5Minutes = std::chrono::minutes(5) / FleetHistory::kStep;
// Fewer jobs than this say nothing about the failure rate.
constexpr std::uint64_t kFewJobs = 20;
constexpr double kManyFailures = 0.2;

double Milliseconds(Nanos duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

std::int64_t EpochMs(WallTime when) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(when.time_since_epoch()).count();
}

// The value below which the fraction `part` of the values lies; null if there are none.
Json Quantile(std::vector<double>& values, double part) {
  if (values.empty()) return nullptr;
  const auto place = static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, values.begin() + place);
  return values[static_cast<std::size_t>(place)];
}

std::string Count(std::size_t count, std::string_view one, std::string_view more) {
  return fmt::format("{} {}", count, count == 1 ? one : more);
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
};
using BestByBenchmark = std::map<std::pair<std::string, std::string>, Best>;

Json BestJson(const BestByBenchmark& best) {
  Json array = Json::array();
  for (const auto& [key, of] : best) {
    if (array.size() == kMaxBest) break;
    const storage::BriefOutcome& fastest = *of.fastest;
    array.push_back({{"benchmark", key.first},
                     {"hardware_class", key.second},
                     {"gflop_per_second", fastest.figures->gflop_per_second},
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

Json NoiseJson(Noise& noise) {
  return {{"measured", noise.spreads.size()},
          {"spread", Quantile(noise.spreads, 0.5)},
          {"measure_ms", Quantile(noise.measure_ms, 0.5)},
          {"grades", noise.grades}};
}

// The workers of one hardware class.
struct Pool {
  const WorkerInfo* example = nullptr;
  std::size_t ready = 0, busy = 0, draining = 0, quarantined = 0, lost = 0, leased = 0;
  std::set<std::string> reasons;  // why some take no jobs
};

std::string UnavailableReason(const WorkerInfo& worker) {
  if (worker.drain) {
    return fmt::format("{} drained by {}{}{}", worker.name, worker.drain->by,
                       worker.drain->reason.empty() ? "" : ": ", worker.drain->reason);
  }
  if (worker.state == WorkerState::kQuarantined) {
    return fmt::format("{} in quarantine: {}", worker.name, worker.quarantine);
  }
  if (worker.state == WorkerState::kDraining) return worker.name + " is going down";
  return {};
}

std::map<std::string, Pool> PoolsOf(const FleetSnapshot& snapshot) {
  constexpr std::size_t kMaxReasons = 3;
  std::map<std::string, Pool> pools;
  for (const WorkerInfo& worker : snapshot.workers) {
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
    if (std::string why = UnavailableReason(worker);
        !why.empty() && pool.reasons.size() < kMaxReasons) {
      pool.reasons.insert(std::move(why));
    }
  }
  return pools;
}

std::size_t QueuedFor(const FleetSnapshot& snapshot, DeviceKind device) {
  const auto of = [&](Placement placement) {
    return snapshot.queued[static_cast<std::size_t>(placement)];
  };
  return of(device == DeviceKind::kCpu ? Placement::kCpu : Placement::kCuda) + of(Placement::kAny);
}

// Why workers of the pool are idle; empty if none is.
std::string WhyIdle(const FleetSnapshot& snapshot, const Pool& pool) {
  if (pool.ready == 0) {
    return pool.draining + pool.quarantined > 0 ? "none of them takes jobs now" : "all are lost";
  }
  if (pool.busy == pool.ready) return {};
  if (snapshot.is_draining) return "the coordinator is shutting down";
  if (snapshot.returning_ms > 0) return "the coordinator waits for its workers to come back";
  if (QueuedFor(snapshot, pool.example->hardware.device) == 0) return "nothing is queued for it";
  if (!snapshot.unserved.empty()) return snapshot.unserved.front();
  return "its turn is next, or the queued jobs want other labels or threads";
}

Json PoolsJson(const FleetFacts& facts) {
  Json array = Json::array();
  for (const auto& [hardware_class, pool] : PoolsOf(facts.snapshot)) {
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
                     {"queued", QueuedFor(facts.snapshot, pool.example->hardware.device)},
                     {"why_idle", idle.empty() ? Json(nullptr) : Json(idle)},
                     {"why_out", pool.reasons},
                     {"noise", noise == facts.digest.pools.end() ? Json(nullptr) : *noise}});
  }
  return array;
}

struct Sentence {
  std::string_view state;  // "ok", "warning", "bad"
  std::string text;
  std::string link;  // the part of the page with details
};

Sentence HealthOf(const FleetFacts& facts) {
  const FleetSnapshot& snapshot = facts.snapshot;
  std::size_t present = 0, ready = 0;
  const WorkerInfo* quarantined = nullptr;
  for (const WorkerInfo& worker : snapshot.workers) {
    if (worker.state != WorkerState::kLost) ++present;
    if (worker.state == WorkerState::kReady) ++ready;
    if (worker.state == WorkerState::kQuarantined) quarantined = &worker;
  }
  const std::size_t queued = snapshot.queued[0] + snapshot.queued[1] + snapshot.queued[2];
  if (!facts.unhealthy.empty()) {
    return {"bad", fmt::format("The coordinator needs help: {}.", facts.unhealthy.front()), ""};
  }
  if (snapshot.is_draining) return {"warning", "The coordinator is going down.", ""};
  if (present == 0) {
    if (queued == 0) return {"warning", "No worker is connected.", "#/workers"};
    return {"bad",
            fmt::format("{} and no worker is connected.", Count(queued, "job waits", "jobs wait")),
            "#/workers"};
  }
  if (ready == 0 && quarantined != nullptr) {
    return {"bad",
            fmt::format("No worker is ready. {} gets the jobs though it is in quarantine: {}. "
                        "Their figures are in doubt.",
                        quarantined->name, quarantined->quarantine),
            "#/worker/" + quarantined->worker.ToString()};
  }
  if (ready == 0 && queued > 0) {
    return {"bad",
            fmt::format("{} and none of {} takes jobs.", Count(queued, "job waits", "jobs wait"),
                        Count(present, "worker", "workers")),
            "#/workers"};
  }
  if (!snapshot.unserved.empty()) {
    return {"warning", fmt::format("Jobs wait: {}.", snapshot.unserved.front()), "#/workers"};
  }
  if (quarantined != nullptr) {
    return {"warning",
            fmt::format("{} is in quarantine: {}.", quarantined->name, quarantined->quarantine),
            "#/worker/" + quarantined->worker.ToString()};
  }
  const FleetHistory::Step recent = facts.history.Last(kStepsIn5Minutes);
  if (recent.finished >= kFewJobs &&
      static_cast<double>(recent.failed) > kManyFailures * static_cast<double>(recent.finished)) {
    return {
        "warning",
        fmt::format("{} of the last 5 minutes' {} jobs failed.", recent.failed, recent.finished),
        "#/failures"};
  }
  return {"ok",
          fmt::format("{} of {} ready · {} running · nothing needs you.", ready,
                      Count(present, "worker", "workers"),
                      Count(snapshot.running_batches, "batch", "batches")),
          ""};
}

Json HistoryJson(const FleetHistory& history) {
  Json finished = Json::array();
  Json failed = Json::array();
  for (const FleetHistory::Step& step : history.steps()) {
    finished.push_back(step.finished);
    failed.push_back(step.failed);
  }
  return {{"step_s", FleetHistory::kStep.count()},
          {"steps", FleetHistory::kSteps},
          {"end_ms", EpochMs(history.steps_end())},
          {"finished", std::move(finished)},
          {"failed", std::move(failed)}};
}

Json CardsJson(const FleetFacts& facts) {
  const FleetSnapshot& snapshot = facts.snapshot;
  const auto ready = std::ranges::count(snapshot.workers, WorkerState::kReady, &WorkerInfo::state);
  const auto lost = std::ranges::count(snapshot.workers, WorkerState::kLost, &WorkerInfo::state);
  const double rate = facts.history.JobsPerSecond();
  const std::size_t queued = snapshot.queued[0] + snapshot.queued[1] + snapshot.queued[2];
  const std::size_t left = queued + snapshot.leased;
  const FleetHistory::Step recent = facts.history.Last(kStepsIn5Minutes);
  return {{"jobs_per_second", rate},
          {"queued", queued},
          {"leased", snapshot.leased},
          {"eta_s", left > 0 && rate > 0 ? Json(static_cast<double>(left) / rate) : Json(nullptr)},
          {"workers_ready", ready},
          {"workers", static_cast<std::int64_t>(snapshot.workers.size()) - lost},
          {"workers_lost", lost},
          {"finished_5m", recent.finished},
          {"failed_5m", recent.failed},
          {"turnaround", facts.digest.turnaround},
          {"accepted_since_start", snapshot.tally.accepted()},
          {"finished_since_start", snapshot.tally.finished()},
          {"from_store_since_start", snapshot.tally.from_store()}};
}

}  // namespace

OutcomeDigest Digest(const std::vector<storage::BriefOutcome>& outcomes, std::size_t most) {
  OutcomeDigest digest{.outcomes = outcomes.size(), .is_all = outcomes.size() < most};
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
  }
  digest.failures = FailuresJson(failures);
  digest.best = BestJson(best);
  digest.benchmarks = best.size();
  for (auto& [name, noise] : workers) digest.by_worker[name] = NoiseJson(noise);
  for (auto& [name, noise] : pools) digest.pools[name] = NoiseJson(noise);
  digest.turnaround = {{"p50_ms", Quantile(took, 0.5)}, {"p99_ms", Quantile(took, 0.99)}};
  return digest;
}

Json BatchViewJson(const storage::StoredBatch& batch, const FleetHistory& history) {
  Json json = wire::BatchJson(BatchInfoOf(batch));
  json["submitted_at_ms"] = EpochMs(batch.accepted_at);
  const auto rate = history.JobsPerSecond(batch.batch);
  const std::uint32_t left = batch.job_count - batch.finished;
  json["jobs_per_second"] = rate && left > 0 ? Json(*rate) : Json(nullptr);
  json["eta_s"] = rate && *rate > 0 && left > 0 ? Json(left / *rate) : Json(nullptr);
  return json;
}

Json OverviewJson(const FleetFacts& facts) {
  const FleetSnapshot& snapshot = facts.snapshot;
  const Sentence health = HealthOf(facts);
  Json drains = Json::array();
  for (const wire::Drain& drain : snapshot.drains) drains.push_back(wire::DrainJson(drain));
  Json batches = Json::array();
  for (const storage::StoredBatch& batch : facts.batches) {
    batches.push_back(BatchViewJson(batch, facts.history));
  }
  return {
      {"at_ms", EpochMs(snapshot.at.wall)},
      {"version", facts.version},
      {"coordinator", snapshot.coordinator},
      {"epoch", snapshot.epoch},
      {"health", {{"state", health.state}, {"sentence", health.text}, {"link", health.link}}},
      {"cards", CardsJson(facts)},
      {"history", HistoryJson(facts.history)},
      {"queued",
       {{"cpu", snapshot.queued[0]}, {"cuda", snapshot.queued[1]}, {"any", snapshot.queued[2]}}},
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
