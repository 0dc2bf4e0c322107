#include "coordinator/shell/job_resolver.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "common/base/log.h"
#include "common/job/task.h"
#include "coordinator/core/rules/freshness.h"

namespace loopfleet::coordinator {
namespace {

// Encodes exactly the fields that replay and placement depend on.
std::string ContentOf(const JobSpec& spec) {
  const std::string& text =
      std::visit([](const auto& source) -> const std::string& { return source.text; }, spec.source);
  std::string content;
  content.reserve(text.size() + 32 + spec.actions.size() * 2);
  const auto byte = [&](auto value) { content += static_cast<char>(value); };
  byte(spec.source.index());
  byte(spec.rules);
  byte(spec.on_illegal);
  byte(spec.merge_all_first);
  byte(spec.dialect ? 1 + static_cast<int>(*spec.dialect) : 0);
  byte(spec.device);
  byte(spec.profile);
  for (const looptree::Action& action : spec.actions) {
    byte(action.index());
    if (const auto* split = std::get_if<looptree::Split>(&action)) {
      char factor[sizeof split->factor];
      std::memcpy(factor, &split->factor, sizeof factor);
      content.append(factor, sizeof factor);
    }
  }
  byte(std::variant_size_v<looptree::Action>);  // ends the actions
  // Each text with its length, so that no two requests have one content.
  const auto add_size = [&](std::size_t size) {
    char bytes[sizeof size];
    std::memcpy(bytes, &size, sizeof size);
    content.append(bytes, sizeof bytes);
  };
  const auto add = [&](const std::string& each) {
    add_size(each.size());
    content += each;
  };
  add(text);
  for (const auto* list : {&spec.passes, &spec.observe}) {
    add_size(list->size());
    for (const std::string& each : *list) add(each);
  }
  return content;
}

}  // namespace

const std::vector<WorkerKind>& StoredConditions::KindsFor(const JobSpec& spec,
                                                          Placement placement) const {
  static const std::vector<WorkerKind> kNobody;
  if (state_ == nullptr) return kNobody;
  Demand demand = DemandOf(spec, placement);
  demand.threads = 1;         // a result has the thread count requested, not its worker's
  demand.protocol_minor = 0;  // this program judges the stored result, not a worker
  const auto known = kinds_.find(demand);
  if (known != kinds_.end()) return known->second;
  std::vector<WorkerKind> kinds = state_->workers.KindsFor(demand);
  return kinds_.emplace(std::move(demand), std::move(kinds)).first->second;
}

bool StoredConditions::Accepts(const JobSpec& spec, std::optional<Placement> placement,
                               const storage::StoredResult& result) const {
  if (spec.affinity.empty()) return true;
  if (state_ == nullptr) return false;
  // Read each time: a message is resolved in slices, and a worker may take a job between them.
  const Uuid bound = state_->affinities.WorkerOf(spec.affinity);
  if (const auto known = answered_by_.find(spec.affinity);
      bound.is_nil() && known != answered_by_.end()) {
    return known->second == result.worker;
  }
  const Worker* worker =
      bound.is_nil() ? state_->workers.FindReady(result.worker) : state_->workers.Find(bound);
  if (worker == nullptr || worker->facts.name != result.worker) return false;
  if (placement && !Serves(worker->supply(), DemandOf(spec, *placement))) return false;
  if (bound.is_nil()) answered_by_.emplace(spec.affinity, result.worker);
  return true;
}

std::vector<storage::Witness> StoredConditions::CandidatesFor(const JobSpec& spec,
                                                              Placement placement,
                                                              const WorkerKind& kind) const {
  std::vector<storage::Witness> candidates;
  if (state_ == nullptr) return candidates;
  const Demand demand = DemandOf(spec, placement);
  const Uuid bound = state_->affinities.WorkerOf(spec.affinity);
  for (const auto& [id, worker] : state_->workers.all()) {
    if (worker.state != wire::WorkerState::kReady || (!bound.is_nil() && id != bound)) continue;
    if (!IsOfKind(worker.facts, kind) || !Serves(worker.supply(), demand)) continue;
    candidates.push_back({.worker = worker.facts.name, .host = worker.facts.hardware.host});
  }
  return candidates;
}

const ReplayMemory::Replayed& ReplayMemory::Replay(const JobSpec& spec) {
  std::string content = ContentOf(spec);
  if (const auto known = current_.find(content); known != current_.end()) return known->second;
  if (auto node = previous_.extract(content); !node.empty()) {
    return Remember(std::move(node.key()), std::move(node.mapped()));
  }
  auto resolved = TaskOf(spec).resolve(spec);
  return Remember(std::move(content),
                  resolved ? Replayed(*resolved) : Replayed(std::move(resolved).error()));
}

ResolvedTask ReplayMemory::Recall(const storage::ReplayResult& stored, const JobSpec& spec) {
  JobSpec program{.source = spec.source, .rules = spec.rules};
  program.dialect = spec.dialect;
  program.device = spec.device;
  program.profile = spec.profile;
  const auto* measure = std::get_if<ResolvedTask>(&Replay(program));
  return {.subject = stored.subject,
          .program = measure == nullptr ? std::nullopt : measure->program,
          .placement = stored.placement,
          .flop_count = measure == nullptr ? 0 : measure->flop_count};
}

const ReplayMemory::Replayed& ReplayMemory::Remember(std::string content, Replayed replayed) {
  constexpr std::size_t kEntryBytes = 256;  // of a node and its failure text, approximate
  if (bytes_ > max_bytes_) {
    previous_ = std::exchange(current_, {});
    bytes_ = 0;
  }
  bytes_ += content.size() + kEntryBytes;
  return current_.insert_or_assign(std::move(content), std::move(replayed)).first->second;
}

ResolvedJob JobResolver::Resolve(JobSpec spec, const StoredConditions& conditions) {
  if (auto senseless = ValidateJob(spec)) {
    return {.spec = std::move(spec), .resolution = *std::move(senseless)};
  }
  const ReplayMemory::Replayed& replayed = memory_.Replay(spec);
  if (const auto* failure = std::get_if<Failure>(&replayed)) {
    return {.spec = std::move(spec), .resolution = *failure};
  }
  const ResolvedTask measure = std::get<ResolvedTask>(replayed);
  if (!TaskOf(spec).answers_equal_jobs) spec.freshness = Freshness::kMeasureAgain;
  if (spec.freshness == Freshness::kAllowStored) {
    if (auto stored = Lookup(spec, measure, conditions)) {
      return {.spec = std::move(spec), .resolution = std::move(stored)};
    }
  }
  return {.spec = std::move(spec), .resolution = measure};
}

void JobResolver::MeasureStale(std::vector<ResolvedJob>& jobs, const StoredConditions& conditions) {
  for (ResolvedJob& job : jobs) {
    const auto* stored = std::get_if<storage::StoredAnswer>(&job.resolution);
    if (stored == nullptr || job.spec.affinity.empty()) continue;
    if (conditions.Accepts(job.spec, std::nullopt, **stored)) continue;
    job.resolution = std::get<ResolvedTask>(memory_.Replay(job.spec));
  }
}

ResolvedJob JobResolver::ResolveRecovered(JobSpec spec,
                                          const std::optional<storage::ReplayResult>& stored) {
  if (!stored) return Resolve(std::move(spec), {});
  const ResolvedTask measure = memory_.Recall(*stored, spec);
  return {.spec = std::move(spec), .resolution = measure};
}

std::vector<storage::ResultKey> KeysFor(const JobSpec& spec, const ResolvedTask& measure,
                                        const StoredConditions& conditions, WallTime now) {
  std::vector<storage::ResultKey> keys;
  for (const WorkerKind& kind : conditions.KindsFor(spec, measure.placement)) {
    keys.push_back({.subject = measure.subject,
                    .hardware_class = kind.hardware_class,
                    .compiler = kind.compiler,
                    .threads = spec.threads,
                    .cache = spec.cache,
                    .policy = kind.policy,
                    .precision = spec.precision,
                    .min_grade = spec.min_grade,
                    .measured_since = MeasuredSince(now, spec.max_age_s)});
  }
  return keys;
}

// Measuring again is always correct; the log tells the operator about the damage.
void JobResolver::NoteFailed(const Error& error, const SubjectKey& subject) {
  metrics_.DamagedRows(error.kind == ErrorKind::kCorrupt ? 1 : 0);
  if (const auto count = lookup_log_.Count(clock_.Now())) {
    log::Warning("store.lookup_failed count={} subject={} reason={}", *count, subject.ToString(),
                 error.message);
  }
}

storage::StoredAnswer JobResolver::Lookup(const JobSpec& spec, const ResolvedTask& measure,
                                          const StoredConditions& conditions) {
  const bool is_timed = TaskOf(spec).is_timed;
  const std::vector<storage::ResultKey> keys = KeysFor(spec, measure, conditions, clock_.WallNow());
  for (const storage::ResultKey& key : keys) {
    // Until the job's outcome is on disk the answer waits in memory: the row says it all.
    auto found = is_timed ? reader_.FindResult(key)
                          : reader_.FindObservation(key, storage::ObservedValues::kLeftOut);
    if (!found) {
      NoteFailed(found.error(), measure.subject);
      continue;
    }
    if (*found && conditions.Accepts(spec, measure.placement, **found)) {
      metrics_.LookedUp(monitoring::LookupResult::kHit);
      return *std::move(found);
    }
  }
  const std::vector<WorkerKind>& kinds = conditions.KindsFor(spec, measure.placement);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    auto known =
        reader_.FindFailure({.key = keys[i],
                             .cut_above_ns = spec.cut_above_ns,
                             .now = clock_.WallNow(),
                             .candidates = [&] {
                               return conditions.CandidatesFor(spec, measure.placement, kinds[i]);
                             }});
    if (!known) NoteFailed(known.error(), measure.subject);
    if (!known || !*known) continue;
    if (!conditions.Accepts(spec, measure.placement, **known)) continue;
    metrics_.LookedUp(monitoring::LookupResult::kHit);
    return *std::move(known);
  }
  metrics_.LookedUp(monitoring::LookupResult::kMiss);
  return nullptr;
}

}  // namespace loopfleet::coordinator
