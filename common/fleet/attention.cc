#include "common/fleet/attention.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/counted.h"

namespace loopfleet {
namespace {

using wire::Attention;
using wire::Severity;
using wire::WorkerInfo;
using wire::WorkerState;

constexpr std::size_t kMaxNames = 3;  // workers named in one sentence
// Fewer jobs than this say nothing about the failure rate.
constexpr std::uint64_t kFewJobs = 20;
constexpr double kManyFailures = 0.2;

constexpr std::string_view kWorkerList = "loopfleet worker list";
constexpr std::array<AttentionInfo, 13> kTable = {{
    {AttentionKind::kCoordinatorStuck, "coordinator_stuck", "", "", true},
    {AttentionKind::kStorageFull, "storage_full", "df -h", "", true},
    {AttentionKind::kStorageFailing, "storage_failing", "", "", true},
    {AttentionKind::kNoWorkerReady, "no_worker_ready", kWorkerList, "#/workers", false},
    {AttentionKind::kCoordinatorStopping, "coordinator_stopping", "", "", false},
    {AttentionKind::kJobsUnserved, "jobs_unserved", kWorkerList, "#/workers", false},
    {AttentionKind::kManyFailures, "many_failures", "loopfleet batch list", "#/failures", false},
    {AttentionKind::kMirrorBehind, "mirror_behind", "", "", false},
    {AttentionKind::kWorkersQuarantined, "workers_quarantined", kWorkerList, "#/workers", false},
    {AttentionKind::kWorkersLost, "workers_lost", kWorkerList, "#/workers", false},
    {AttentionKind::kWorkersImprecise, "workers_imprecise", kWorkerList, "#/workers", false},
    {AttentionKind::kWorkersOutdated, "workers_outdated", kWorkerList, "#/workers", false},
    {AttentionKind::kWorkersDrained, "workers_drained", kWorkerList, "#/workers", false},
}};

Attention Item(AttentionKind kind, Severity severity, std::uint64_t count, std::string sentence) {
  const AttentionInfo& info = kTable.at(static_cast<std::size_t>(kind));
  LF_CHECK(info.kind == kind, "the table is not in the order of the kinds");
  return {.kind = std::string(info.name),
          .severity = severity,
          .count = count,
          .sentence = std::move(sentence)};
}

// Most of its figures are coarse: something else uses its timing core, or its host is set up badly.
bool IsImprecise(const WorkerInfo& worker) {
  constexpr std::uint32_t kFewFigures = 20;
  return worker.recent_figures >= kFewFigures &&
         worker.recent_imprecise * 4 >= worker.recent_figures * 3;
}

// What is the matter with a worker. It has at most one: the first that applies.
struct Limit {
  std::optional<AttentionKind> kind;  // none: nothing to do, it is on its way out
  std::string state;                  // "drained"
  std::string reason;                 // "by ada since 2026-07-01 12:30 UTC: new fan"
};

std::string DrainText(const wire::Drain& drain) {
  const auto since = std::chrono::floor<std::chrono::seconds>(drain.since.time_since_epoch());
  return fmt::format("by {} since {:%Y-%m-%d %H:%M} UTC{}{}", drain.by, fmt::gmtime(since.count()),
                     drain.reason.empty() ? "" : ": ", drain.reason);
}

std::optional<Limit> LimitOf(const WorkerInfo& worker) {
  switch (worker.state) {
    case WorkerState::kLost: return Limit{AttentionKind::kWorkersLost, "lost", {}};
    case WorkerState::kDraining:
      if (!worker.drain) return Limit{std::nullopt, "going down", {}};
      return Limit{AttentionKind::kWorkersDrained, "drained", DrainText(*worker.drain)};
    case WorkerState::kQuarantined:
      return Limit{AttentionKind::kWorkersQuarantined, "in quarantine", worker.quarantine};
    case WorkerState::kReady:
      if (IsImprecise(worker)) {
        return Limit{AttentionKind::kWorkersImprecise, "imprecise",
                     fmt::format("{} of its last {} figures have grade C or D: `loopfleet doctor` "
                                 "on its host",
                                 worker.recent_imprecise, worker.recent_figures)};
      }
      if (worker.outdated.empty()) return std::nullopt;
      return Limit{AttentionKind::kWorkersOutdated, "outdated", worker.outdated};
  }
  LF_CHECK(false, "worker state {}", static_cast<int>(worker.state));
}

// "2 workers are lost: a, b."
void AddWorkers(const FleetModel& fleet, std::vector<Attention>& items) {
  struct Group {
    std::size_t count = 0;
    std::string state;
    std::vector<std::string> named;
  };
  std::map<AttentionKind, Group> groups;
  for (const WorkerInfo& worker : fleet.workers) {
    auto limit = LimitOf(worker);
    if (!limit || !limit->kind) continue;
    Group& group = groups[*limit->kind];
    group.state = std::move(limit->state);
    if (++group.count > kMaxNames) continue;
    group.named.push_back(
        limit->reason.empty() ? worker.name : fmt::format("{} ({})", worker.name, limit->reason));
  }
  for (auto& [kind, group] : groups) {
    if (group.count > kMaxNames) {
      group.named.push_back(fmt::format("and {} more", group.count - kMaxNames));
    }
    // A drain is deliberate.
    const bool is_wanted = kind == AttentionKind::kWorkersDrained;
    items.push_back(Item(kind, is_wanted ? Severity::kNotice : Severity::kWarning, group.count,
                         fmt::format("{} {}: {}.", Counted(group.count, "worker is", "workers are"),
                                     group.state, fmt::join(group.named, ", "))));
  }
}

std::optional<Attention> StorageTrouble(const FleetModel& fleet) {
  if (!fleet.storage_trouble) return std::nullopt;
  switch (*fleet.storage_trouble) {
    case ErrorKind::kFull:
      return Item(AttentionKind::kStorageFull, Severity::kProblem, 1,
                  "The database has no room: no jobs are accepted.");
    case ErrorKind::kUnavailable:
      return Item(AttentionKind::kStorageFailing, Severity::kProblem, 1,
                  "Another process holds the database: nothing can be written.");
    default:
      return Item(AttentionKind::kStorageFailing, Severity::kProblem, 1,
                  "The database cannot be written to: see storage.fails in the log.");
  }
}

std::optional<Attention> NoWorkerReady(const FleetModel& fleet) {
  if (fleet.Workers(WorkerState::kReady) > 0) return std::nullopt;
  const auto item = [&](Severity severity, std::string sentence) {
    return Item(AttentionKind::kNoWorkerReady, severity, std::max<std::size_t>(fleet.Queued(), 1),
                std::move(sentence));
  };
  if (fleet.Workers(WorkerState::kQuarantined) > 0) {
    return item(
        Severity::kProblem,
        "No worker is ready: quarantined ones get the jobs, and their figures are in doubt.");
  }
  if (fleet.Queued() > 0) {
    return item(Severity::kProblem, fmt::format("{} and no worker is ready.",
                                                Counted(fleet.Queued(), "job waits", "jobs wait")));
  }
  return item(Severity::kWarning, fleet.workers.empty() ? "No worker is connected."
                                                        : "No worker is ready; no job waits.");
}

std::optional<Attention> UnservedJobs(const FleetModel& fleet) {
  // Without any worker NoWorkerReady says it.
  const bool is_empty = fleet.workers.size() == fleet.Workers(WorkerState::kLost);
  if (fleet.unserved_jobs == 0 || is_empty) return std::nullopt;
  return Item(AttentionKind::kJobsUnserved, Severity::kWarning, fleet.unserved_jobs,
              fmt::format("{}: {}.", Counted(fleet.unserved_jobs, "job waits", "jobs wait"),
                          fmt::join(fleet.unserved_reasons, "; ")));
}

std::optional<Attention> ManyFailures(const FleetModel& fleet) {
  if (fleet.recently_judged < kFewJobs ||
      static_cast<double>(fleet.recently_failed) <=
          kManyFailures * static_cast<double>(fleet.recently_judged)) {
    return std::nullopt;
  }
  return Item(AttentionKind::kManyFailures, Severity::kWarning, fleet.recently_failed,
              fmt::format("{} of the last 5 minutes' {} jobs failed.", fleet.recently_failed,
                          fleet.recently_judged));
}

std::optional<Attention> MirrorBehind(const FleetModel& fleet) {
  if (!fleet.mirror || fleet.mirror->behind <= kMirrorBehindAfter) return std::nullopt;
  const MirrorModel& mirror = *fleet.mirror;
  const std::string since = fmt::format(
      "PostgreSQL is {} behind",
      Counted(static_cast<std::uint64_t>(
                  std::chrono::duration_cast<std::chrono::seconds>(mirror.behind).count()),
              "second", "seconds"));
  return Item(
      AttentionKind::kMirrorBehind, Severity::kWarning, std::max<std::uint64_t>(mirror.waiting, 1),
      mirror.trouble.empty()
          ? fmt::format("{}: {}.", since, Counted(mirror.waiting, "outcome waits", "outcomes wait"))
          : fmt::format("{}: {}.", since, mirror.trouble));
}

}  // namespace

std::span<const AttentionInfo> AttentionTable() { return kTable; }

const AttentionInfo* FindAttention(std::string_view name) {
  const auto found = std::ranges::find(kTable, name, &AttentionInfo::name);
  return found == kTable.end() ? nullptr : &*found;
}

std::optional<Attention> StuckLoop(Nanos silence) {
  if (silence <= kStuckAfter) return std::nullopt;
  return Item(AttentionKind::kCoordinatorStuck, Severity::kProblem, 1,
              fmt::format("The event loop has not turned for {:.1f} s.",
                          std::chrono::duration<double>(silence).count()));
}

wire::FleetHealth HealthOf(const FleetModel& fleet, Nanos silence) {
  wire::FleetHealth health;
  std::vector<Attention>& items = health.attention;
  const auto add = [&](std::optional<Attention> item) {
    if (item) items.push_back(*std::move(item));
  };
  add(StuckLoop(silence));
  add(StorageTrouble(fleet));
  add(NoWorkerReady(fleet));
  if (fleet.is_stopping) {
    add(Item(AttentionKind::kCoordinatorStopping, Severity::kWarning, 1,
             "The coordinator is stopping."));
  }
  add(UnservedJobs(fleet));
  add(ManyFailures(fleet));
  add(MirrorBehind(fleet));
  AddWorkers(fleet, items);
  std::ranges::stable_sort(items, std::ranges::greater{}, &Attention::severity);
  if (health.level() != Severity::kNotice) {
    health.sentence = items.front().sentence;
    return health;
  }
  const std::size_t ready = fleet.Workers(WorkerState::kReady);
  const std::size_t present = fleet.workers.size() - fleet.Workers(WorkerState::kLost);
  health.sentence = fmt::format("{} of {} ready, {} running; nothing needs you.", ready,
                                Counted(present, "worker", "workers"),
                                Counted(fleet.running_batches, "batch", "batches"));
  return health;
}

std::string WhyLimited(const WorkerInfo& worker) {
  const auto limit = LimitOf(worker);
  if (!limit || limit->kind == AttentionKind::kWorkersLost) return {};
  if (limit->reason.empty()) return limit->state;
  const bool is_by = limit->kind == AttentionKind::kWorkersDrained;
  return fmt::format("{}{}{}", limit->state, is_by ? " " : ": ", limit->reason);
}

}  // namespace loopfleet
