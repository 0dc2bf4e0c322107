#include "coordinator/core/handlers/on_drain.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "common/base/counted.h"
#include "common/base/suggestion.h"
#include "coordinator/core/dispatch/rebalance.h"
#include "coordinator/core/handlers/worker_info.h"
#include "coordinator/core/state/client_reply.h"

namespace loopfleet::coordinator {
namespace {

bool Names(const std::string& target, const Worker& worker) {
  return target == worker.facts.hardware.host || target == worker.facts.name ||
         target == worker.id().ToString();
}

std::optional<wire::Drain> DrainOf(const State& state, const Worker& worker) {
  for (const auto& [target, drained] : state.drains) {
    if (!Names(target, worker)) continue;
    return wire::Drain{
        .target = target, .reason = drained.reason, .by = drained.by, .since = drained.since};
  }
  return std::nullopt;
}

void Update(Transaction& tx, Worker& worker) {
  const bool was_drained = worker.drain.has_value();
  worker.drain = DrainOf(tx.state, worker);
  if (worker.state == wire::WorkerState::kLost) return;
  tx.state.workers.SetState(worker, StateOf(worker));
  if (was_drained == worker.drain.has_value()) return;
  tx.effects.push_back(Observation{
      WorkerChanged{.change = worker.drain ? WorkerChange::kDrained : WorkerChange::kResumed,
                    .name = worker.facts.name,
                    .leases = static_cast<std::uint32_t>(worker.running.size())}});
  if (worker.drain) AskBack(tx, worker, {worker.running.begin(), worker.running.end()});
}

// "; nearest: build-7", chosen among all valid targets.
std::string Suggestion(const State& state, const wire::SetDrain& set) {
  std::vector<std::string> names;
  for (const auto& [id, worker] : state.workers.all()) {
    names.push_back(worker.facts.hardware.host);
    names.push_back(worker.facts.name);
  }
  for (const auto& [target, drained] : state.drains) names.push_back(target);
  const std::vector<std::string_view> views(names.begin(), names.end());
  return NearestSuffix(set.target, views);
}

}  // namespace

void OnSetDrain(Transaction& tx, const Asker& asker, const wire::SetDrain& set) {
  State& state = tx.state;
  const bool stands = state.drains.contains(set.target);
  bool names_somebody = false;
  for (const auto& [id, worker] : state.workers.all()) names_somebody |= Names(set.target, worker);
  if (set.wish == wire::DrainAction::kResume && !stands && !names_somebody) {
    return Refuse(tx, asker, FailureCode::kNotFound,
                  fmt::format("'{}' is neither a drained target nor a worker or its host{}",
                              set.target, Suggestion(state, set)));
  }
  if (set.wish == wire::DrainAction::kDrain && !stands) {
    if (!names_somebody) {
      return Refuse(tx, asker, FailureCode::kNotFound,
                    fmt::format("'{}' is no worker, and no worker's host{}", set.target,
                                Suggestion(state, set)));
    }
    if (state.drains.size() >= state.limits.max_drains) {
      return Refuse(tx, asker, FailureCode::kBusy,
                    fmt::format("{} drained (the limit)",
                                Counted(state.drains.size(), "target is", "targets are")));
    }
  }
  // Resuming a worker that is not drained changes nothing: the request may be a repeat whose first
  // reply got lost.
  if (set.wish == wire::DrainAction::kResume) {
    state.drains.erase(set.target);
    tx.writes.push_back(storage::WorkersResumed{.target = set.target});
  } else {
    storage::WorkersDrained drained{
        .target = set.target,
        .reason = set.reason,
        .by = set.by,
        .since = stands ? state.drains.at(set.target).since : tx.now.wall};
    state.drains.insert_or_assign(set.target, drained);
    tx.writes.push_back(std::move(drained));
  }
  std::vector<Uuid> concerned;
  for (const auto& [id, worker] : state.workers.all()) {
    if (Names(set.target, worker)) concerned.push_back(id);
  }
  for (const Uuid& id : concerned) {
    Update(tx, *state.workers.Find(id));
  }
  tx.commit.drains.emplace_back(asker, set.target);
}

void ReplyWithConcerned(Transaction& tx, const Asker& asker, const std::string& target) {
  wire::WorkerList list;
  for (const auto& [id, worker] : tx.state.workers.all()) {
    if (Names(target, worker)) list.workers.push_back(WorkerInfoOf(worker, tx.now.instant));
  }
  Reply(tx, asker, std::move(list));
}

void ApplyDrains(Transaction& tx, Worker& worker) {
  if (tx.state.drains.empty()) return;
  worker.drain.reset();
  Update(tx, worker);
}

}  // namespace loopfleet::coordinator
