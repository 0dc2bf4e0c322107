#include "coordinator/core/handlers/explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/counted.h"
#include "coordinator/core/dispatch/dispatch.h"
#include "coordinator/core/dispatch/no_matching_worker.h"
#include "coordinator/core/dispatch/queueing.h"
#include "coordinator/core/handlers/report_validation.h"

namespace loopfleet::coordinator {
namespace {

using wire::WorkerState;

std::uint64_t Milliseconds(Nanos duration) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(duration).count(), 0));
}

std::string Seconds(std::uint64_t ms) {
  return fmt::format("{:.3g} s", static_cast<double>(ms) / 1e3);
}

wire::WorkerFit FitOf(const Worker& worker, const Demand& demand) {
  Misfit misfit = MisfitOf(worker.supply(), demand);
  // Shown like a label that the worker lacks.
  if (misfit.older_protocol && misfit.missing_labels.size() < wire::kMaxLabels) {
    misfit.missing_labels.push_back(
        fmt::format("protocol={}.{}", wire::kProtocolVersion.major, demand.protocol_minor));
  }
  return {.name = worker.facts.name,
          .state = worker.state,
          .connected = worker.peer.has_value(),
          .leased_jobs = static_cast<std::uint32_t>(worker.running.size()),
          .credit = worker.facts.credit,
          .other_device = misfit.other_device,
          .max_threads = misfit.too_few_threads ? worker.facts.max_threads : 0,
          .missing_labels = std::move(misfit.missing_labels),
          .other_affinity = misfit.other_affinity,
          .quarantine = worker.state == WorkerState::kQuarantined
                            ? QuarantineText(QuarantineOf(worker))
                            : std::string()};
}

// Best fit first; equal ones by name.
void AddWorkers(const State& state, const Demand& demand, wire::JobExplanation& explanation) {
  using Distance = std::tuple<std::size_t, bool, bool, std::string_view, const Worker*>;
  std::vector<Distance> all;
  for (const auto& [id, worker] : state.workers.all()) {
    all.emplace_back(MisfitOf(worker.supply(), demand).count(),
                     worker.state != WorkerState::kReady || !worker.peer, worker.FreeCredit() == 0,
                     worker.facts.name, &worker);
  }
  const std::size_t listed = std::min<std::size_t>(all.size(), wire::kMaxExplainedWorkers);
  std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(listed));
  for (std::size_t i = 0; i < listed; ++i) {
    explanation.workers.push_back(FitOf(*std::get<const Worker*>(all[i]), demand));
  }
  explanation.more_workers = static_cast<std::uint32_t>(all.size() - listed);
}

struct Fleet {
  std::size_t matching = 0;
  std::size_t ready = 0;  // of the matching
  std::size_t free = 0;   // of the ready, with credit left
  std::size_t held = 0;   // of the ready, without: they keep too many reports
};
Fleet FleetFor(const State& state, const Demand& demand) {
  Fleet fleet;
  for (const auto& [id, worker] : state.workers.all()) {
    if (!Serves(worker.supply(), demand) || worker.state == WorkerState::kLost) continue;
    ++fleet.matching;
    if (worker.state != WorkerState::kReady || !worker.peer) continue;
    ++fleet.ready;
    if (worker.FreeCredit() > 0) {
      ++fleet.free;
    } else if (worker.running.size() < worker.facts.credit) {
      ++fleet.held;
    }
  }
  return fleet;
}

std::string QueueText(const wire::JobExplanation& explanation) {
  std::string text =
      explanation.ahead_own == 0
          ? "first of its client's"
          : fmt::format("behind {}{} of its client's",
                        explanation.ahead_own_is_exact ? "" : "more than ", explanation.ahead_own);
  if (explanation.other_clients > 0) {
    text += fmt::format("; {} wait too, about {} of theirs come first",
                        Counted(explanation.other_clients, "other client", "other clients"),
                        explanation.ahead_others);
  }
  return text;
}

// No matching worker is ready: says which of them are quarantined, and what that means for the job.
std::string WhyNobodyIsReady(const State& state, const Demand& demand, Instant now) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> quarantined;
  std::size_t others = 0;
  for (const auto& [id, worker] : state.workers.all()) {
    if (worker.state == WorkerState::kLost || !Serves(worker.supply(), demand)) continue;
    if (worker.state != WorkerState::kQuarantined) {
      ++others;
      continue;
    }
    if (quarantined.size() < kNamed) {
      quarantined.push_back(fmt::format("{} is in quarantine for {}: {}", worker.facts.name,
                                        Seconds(Milliseconds(now - worker.quarantined_at)),
                                        QuarantineText(QuarantineOf(worker))));
    }
  }
  if (quarantined.empty()) return "and none of them takes jobs now: see each one's state";
  std::string text = fmt::format("and none of them is ready: {}", fmt::join(quarantined, "; "));
  if (others > 0) text += fmt::format("; {} or not connected", Counted(others, "drains", "drain"));
  return text + "; in its turn the job is measured there, of grade C at best and in doubt";
}

std::string WhyQueued(const State& state, const Demand& demand, Instant now,
                      const wire::JobExplanation& explanation) {
  if (state.service == Service::kDraining)
    return "the coordinator is shutting down: it will be measured when it is back";
  if (now < state.grants_from) {
    return fmt::format(
        "the coordinator was started a moment ago and waits {} for its workers to come back",
        Seconds(Milliseconds(state.grants_from - now)));
  }
  const Fleet fleet = FleetFor(state, demand);
  if (fleet.matching == 0) {
    return fmt::format("{}; it ends with NO_MATCHING_WORKER in {} unless one comes",
                       WhyUnschedulable(state.workers, demand, Nanos{0}),
                       Seconds(explanation.unserved_limit_ms -
                               std::min(explanation.unserved_limit_ms, explanation.unserved_ms)));
  }
  const std::string match = Counted(fleet.matching, "worker matches", "workers match");
  if (fleet.ready == 0) {
    return fmt::format("{}, {}", match, WhyNobodyIsReady(state, demand, now));
  }
  if (!HasRoomForOutcomes(state)) {
    return fmt::format(
        "{}, but {} to be written: the disk is slow or full", match,
        Counted(state.commits.undurable_outcomes(), "outcome waits", "outcomes wait"));
  }
  if (fleet.free == 0 && fleet.held > 0) {
    return fmt::format("{}, but their reports wait to be written: the disk is slow or full", match);
  }
  if (fleet.free == 0) {
    return fmt::format("{}, and all of them have as many jobs as they take; it is {}", match,
                       QueueText(explanation));
  }
  return fmt::format("{}, {} free: its turn is at once; it is {}", match,
                     fleet.free == 1 ? "one is" : fmt::format("{} are", fleet.free),
                     QueueText(explanation));
}

void ExplainQueued(const State& state, const Job& job, Instant now,
                   wire::JobExplanation& explanation) {
  const ReadyQueue::Place& place = std::get<Queued>(job.progress).place;
  const Demand& demand = state.ready.DemandAt(place);
  const ReadyQueue::Position position = state.ready.PositionOf(place);
  explanation.ahead_own = position.own;
  explanation.ahead_own_is_exact = position.own_is_exact;
  explanation.ahead_others = position.others;
  explanation.other_clients = static_cast<std::uint32_t>(position.other_clients);
  explanation.unserved_limit_ms = Milliseconds(state.limits.no_worker_grace);
  if (!state.workers.IsServed(demand)) {
    const Instant since = std::max(state.unschedulable.SinceOf(demand, now), job.accepted_at);
    explanation.unserved_ms = Milliseconds(now - since);
  }
  AddWorkers(state, demand, explanation);
  explanation.reason = "queued: " + WhyQueued(state, demand, now, explanation);
}

void ExplainLeased(const State& state, const Job& job, LeaseId id, Instant now,
                   wire::JobExplanation& explanation) {
  const LeaseRecord& lease = *state.leases.Find(id);
  const Worker& worker = *state.workers.Find(lease.worker);
  explanation.state = wire::JobState::kLeased;
  explanation.worker = worker.facts.name;
  explanation.leased_ms = Milliseconds(now - lease.granted_at);
  explanation.reason = fmt::format("leased: {} has had it for {}, attempt {}", explanation.worker,
                                   Seconds(explanation.leased_ms), job.attempts());
  if (const std::string doubt = DoubtOf(worker, lease); !doubt.empty()) {
    explanation.reason +=
        fmt::format("; what comes of it is of grade C at best and in doubt: {}", doubt);
  }
}

void ExplainFollowing(const State& state, const Job& job, wire::JobExplanation& explanation) {
  explanation.follows = state.single_flight.Find(QuestionOf(job))->leader;
  if (!explanation.follows) {
    explanation.reason = "queued: an equal job has been answered, and this one is about to be";
    return;
  }
  explanation.reason = fmt::format(
      "queued: job {} asks the same and is before it; both get its answer (`loopfleet job explain "
      "{}` tells where that one is)",
      *explanation.follows, *explanation.follows);
}

std::string NextTurnText(const State& state, const Job& job, const WaitsForAnother&) {
  return fmt::format("it failed on {}, and waits {} for another one that could run it to have room",
                     Counted(job.failed_attempts.size(), "worker", "workers"),
                     Seconds(Milliseconds(state.limits.retry_elsewhere)));
}
std::string NextTurnText(const State& state, const Job& job, const WaitsToBeAlone& alone) {
  const Worker* worker = state.workers.Find(alone.worker);
  return fmt::format(
      "{} went away with it, so it is to run alone: {} is reserved for it, and finishes {} first",
      Counted(job.losses, "worker", "workers"), worker ? worker->facts.name : "a worker",
      Counted(worker ? worker->running.size() : 0, "job", "jobs"));
}

void ExplainRetrying(const State& state, const Job& job, const Retrying& retrying,
                     wire::JobExplanation& explanation) {
  explanation.reason =
      "queued: " + std::visit([&](const auto& what) { return NextTurnText(state, job, what); },
                              state.retries.entries().at(retrying.order).what);
}

// Explains each state of a job.
struct ProgressExplainer {
  const State& state;
  const Job& job;
  Instant now;
  wire::JobExplanation& explanation;

  void operator()(const Queued&) const { ExplainQueued(state, job, now, explanation); }
  void operator()(const Leased& leased) const {
    ExplainLeased(state, job, leased.lease, now, explanation);
  }
  void operator()(const Following&) const { ExplainFollowing(state, job, explanation); }
  void operator()(const Retrying& retrying) const {
    ExplainRetrying(state, job, retrying, explanation);
  }
};

}  // namespace

wire::JobExplanation Explain(const State& state, const Job& job, Instant now) {
  wire::JobExplanation explanation{.job = job.id,
                                   .priority = job.spec.priority,
                                   .waited_ms = Milliseconds(now - job.accepted_at),
                                   .attempts = job.attempts()};
  if (job.expires_at != Instant::max()) {
    explanation.deadline_left_ms = Milliseconds(job.expires_at - now);
  }
  if (!job.spec.affinity.empty()) {
    const Worker* worker = state.workers.Find(state.affinities.WorkerOf(job.spec.affinity));
    if (worker != nullptr) explanation.affinity_worker = worker->facts.name;
  }
  if (IsCancelled(state, job.id)) {
    explanation.reason = "queued: its batch is cancelled, and it is about to be ended";
    return explanation;
  }
  std::visit(ProgressExplainer{.state = state, .job = job, .now = now, .explanation = explanation},
             job.progress);
  return explanation;
}

wire::JobExplanation ExplainFinished(JobId job, std::optional<Outcome> outcome) {
  wire::JobExplanation explanation{.job = job, .state = wire::JobState::kFinished};
  if (!outcome) {
    explanation.reason = "finished: its outcome is on its way to disk";
    return explanation;
  }
  explanation.attempts = outcome->attempts;
  explanation.worker = outcome->worker;
  const Evaluation& evaluation = outcome->evaluation;
  if (!evaluation.ok()) {
    const Failure& failure = evaluation.failure();
    explanation.reason =
        fmt::format("finished: {}: {}", InfoOf(failure.code).name, failure.message);
  } else if (outcome->source == OutcomeSource::kStored) {
    explanation.reason =
        fmt::format("finished: answered from the store, measured by {} earlier", outcome->worker);
  } else if (outcome->source == OutcomeSource::kCoalesced) {
    explanation.reason =
        fmt::format("finished: got the answer of an equal job, measured by {}", outcome->worker);
  } else {
    explanation.reason =
        fmt::format("finished: measured by {} in attempt {}", outcome->worker, outcome->attempts);
  }
  explanation.outcome = std::move(outcome);
  return explanation;
}

}  // namespace loopfleet::coordinator
