#include "coordinator/core/tables/worker_registry.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "coordinator/core/rules/placement.h"

namespace loopfleet::coordinator {

using wire::WorkerState;

WorkerState StateOf(const Worker& worker) {
  if (worker.said == wire::DrainState::kDraining || worker.drain) return WorkerState::kDraining;
  return QuarantineOf(worker) ? WorkerState::kQuarantined : WorkerState::kReady;
}

Availability AvailabilityOf(const Worker& worker) {
  switch (worker.state) {
    case WorkerState::kReady: return Availability::kReady;
    case WorkerState::kQuarantined: return Availability::kQuarantined;
    case WorkerState::kDraining:
      return worker.said == wire::DrainState::kDraining ? Availability::kGone
                                                        : Availability::kDrained;
    case WorkerState::kLost: return Availability::kGone;
  }
  LF_CHECK(false, "worker state {}", static_cast<int>(worker.state));
}

Quarantine QuarantineOf(const Worker& worker) {
  if (worker.canary != wire::CanaryState::kDrifting) return {};
  return {
      .cause = worker.drifting ? CauseOf(*worker.drifting) : QuarantineCause::kUnspecifiedCanary,
      .canary_ratio = worker.canary_ratio};
}

Worker& WorkerRegistry::Welcome(const PeerId& peer, wire::WorkerHello hello, Instant now) {
  hello.held.clear();
  if (Worker* other = FindByPeer(peer); other != nullptr && other->id() != hello.worker) {
    Disconnect(*other);  // one connection, one worker
  }
  const auto [known, is_new] = workers_.try_emplace(hello.worker);
  Worker& worker = known->second;
  if (is_new) worker.known_since = now;
  Unrank(worker);
  if (worker.peer) peers_.erase(*worker.peer);
  LeaveShape(worker);
  worker.facts = std::move(hello);
  worker.labels = LabelsOf(worker.facts);
  worker.peer = peer;
  worker.said = wire::DrainState::kServing;
  worker.state = StateOf(worker);
  TakeShape(worker);
  ++changes_;
  worker.heard_at = now;
  peers_[peer] = worker.id();
  Rerank(worker);
  return worker;
}

Worker* WorkerRegistry::Find(const Uuid& worker) {
  const auto entry = workers_.find(worker);
  return entry == workers_.end() ? nullptr : &entry->second;
}

const Worker* WorkerRegistry::Find(const Uuid& worker) const {
  const auto entry = workers_.find(worker);
  return entry == workers_.end() ? nullptr : &entry->second;
}

Worker* WorkerRegistry::FindByPeer(const PeerId& peer) {
  const auto id = peers_.find(peer);
  return id == peers_.end() ? nullptr : Find(id->second);
}

const Worker* WorkerRegistry::FindReady(const std::string& name) const {
  const auto named = by_name_.find(name);
  if (named == by_name_.end()) return nullptr;
  for (const Uuid& id : named->second) {
    ++rows_seen_;
    const Worker& worker = workers_.at(id);
    if (worker.state == WorkerState::kReady) return &worker;
  }
  return nullptr;
}

const std::set<Uuid>& WorkerRegistry::WithHostLabel(const std::string& label) const {
  static const std::set<Uuid> kNone;
  const auto there = by_host_.find(label);
  return there == by_host_.end() ? kNone : there->second;
}

void WorkerRegistry::SetState(Worker& worker, WorkerState state) {
  const WorkerState before = std::exchange(worker.state, state);
  const Availability availability = AvailabilityOf(worker);
  if (before == state && worker.availability == availability) return;
  auto& workers = worker.shape->second.workers;
  if (--workers.at(worker.availability) == 0) workers.erase(worker.availability);
  ++workers[availability];
  worker.availability = availability;
  ++changes_;
  if (state == WorkerState::kLost) {
    Disconnect(worker);
  } else {
    Rerank(worker);
  }
}

void WorkerRegistry::Disconnect(Worker& worker) {
  if (worker.peer) peers_.erase(*worker.peer);
  worker.peer.reset();
  ++changes_;
  Unrank(worker);
}

void WorkerRegistry::HearAll(Instant now) {
  rows_seen_ += workers_.size();
  for (auto& [id, worker] : workers_) {
    if (worker.state != WorkerState::kLost) worker.heard_at = now;
  }
}

void WorkerRegistry::AddRunning(Worker& worker, LeaseId lease) {
  worker.running.insert(lease);
  if (worker.reservation) worker.reservation->has_begun = true;
  worker.is_refilled = worker.FreeCredit() > 0;
  Rerank(worker);
}

void WorkerRegistry::RemoveRunning(Worker& worker, LeaseId lease) {
  LF_CHECK(worker.running.erase(lease) == 1, "worker {} does not have lease {}", worker.facts.name,
           lease);
  if (worker.running.empty() && worker.reservation && worker.reservation->has_begun) {
    worker.reservation.reset();
  }
  // A candidate that is still busy keeps its rank.
  if (worker.rank == 0 || worker.running.empty()) Rerank(worker);
}

void WorkerRegistry::MarkReported(Worker& worker, LeaseId lease) {
  ++worker.unacknowledged;
  RemoveRunning(worker, lease);
}

void WorkerRegistry::CountAcknowledged(const Uuid& id) {
  Worker* worker = Find(id);
  // 0: it was removed and came back, and the report is from before.
  if (worker == nullptr || worker->unacknowledged == 0) return;
  --worker->unacknowledged;
  if (worker->rank == 0) Rerank(*worker);
}

void WorkerRegistry::Reserve(Worker& worker, JobId job) {
  worker.reservation = {.job = job};
  Rerank(worker);
}

void WorkerRegistry::EndReservation(Worker& worker) {
  worker.reservation.reset();
  if (worker.rank == 0) Rerank(worker);
}

void WorkerRegistry::Remove(const Uuid& id) {
  const auto entry = workers_.find(id);
  LF_CHECK(entry != workers_.end(), "worker {} is not here", id.ToString());
  Disconnect(entry->second);
  LeaveShape(entry->second);
  workers_.erase(entry);
  ++changes_;
}

Worker* WorkerRegistry::NextCandidate(DeviceKind device, Load load, std::uint64_t rank) {
  const Ranked& candidates =
      candidates_[static_cast<std::size_t>(device)][static_cast<std::size_t>(load)];
  const auto next = candidates.upper_bound(rank);
  ++rows_seen_;
  return next == candidates.end() ? nullptr : next->second;
}

bool WorkerRegistry::IsServed(const Demand& demand) const {
  return AnyServes(demand,
                   {Availability::kReady, Availability::kQuarantined, Availability::kDrained});
}

bool WorkerRegistry::IsServedNow(const Demand& demand) const {
  return AnyServes(demand, {Availability::kReady, Availability::kQuarantined});
}

bool WorkerRegistry::AnyServes(const Demand& demand,
                               std::initializer_list<Availability> ways) const {
  const auto serves = [&](const Uuid& id) {
    const Worker* worker = Find(id);
    ++rows_seen_;
    return worker != nullptr && std::ranges::find(ways, worker->availability) != ways.end() &&
           Serves(worker->supply(), demand);
  };
  if (!demand.only.is_nil()) return serves(demand.only);
  if (const std::string* host = HostNamedBy(demand)) {
    return std::ranges::any_of(WithHostLabel(*host), serves);
  }
  return std::ranges::any_of(shapes_, [&](const auto& shape) {
    ++rows_seen_;
    const auto has = [&](Availability way) { return shape.second.workers.contains(way); };
    return std::ranges::any_of(ways, has) && ShapeServes(shape.first, demand);
  });
}

WorkerRegistry::LastCandidates& WorkerRegistry::Last() const {
  if (last_.changes == changes_) return last_;
  last_ = {.changes = changes_, .in_quarantine = {}, .has_ready = {}};
  for (const auto& [id, worker] : all()) {
    if (worker.state == WorkerState::kQuarantined) last_.in_quarantine.push_back(id);
  }
  return last_;
}

const std::vector<Uuid>& WorkerRegistry::InQuarantine() const { return Last().in_quarantine; }

bool WorkerRegistry::HasReady(const Demand& demand) const {
  Demand anywhere = demand;
  anywhere.only = {};
  const auto [known, is_new] = Last().has_ready.try_emplace(std::move(anywhere), false);
  if (is_new) {
    known->second = AnyServes(known->first, {Availability::kReady});
  }
  return known->second;
}

std::vector<WorkerKind> WorkerRegistry::KindsFor(const Demand& demand) const {
  std::vector<WorkerKind> kinds;
  std::map<const Shapes::value_type*, bool> fitting;
  for (const auto& [id, worker] : all()) {
    if (worker.state == WorkerState::kLost) continue;
    const auto [fits, is_new] = fitting.try_emplace(worker.shape, false);
    if (is_new) fits->second = ShapeServes(worker.shape->first, demand);
    if (!fits->second || !ServesBeyondShape(worker.supply(), demand)) continue;
    const auto is_its_kind = [&](const WorkerKind& kind) { return IsOfKind(worker.facts, kind); };
    if (std::ranges::none_of(kinds, is_its_kind)) kinds.push_back(KindOf(worker.facts));
  }
  return kinds;
}

std::vector<Uuid> WorkerRegistry::HeardBefore(Instant instant) const {
  std::vector<Uuid> silent;
  for (const auto& [id, worker] : all()) {
    if (worker.state != WorkerState::kLost && worker.heard_at < instant) silent.push_back(id);
  }
  return silent;
}

void WorkerRegistry::ForgetLost(Instant instant) {
  std::vector<Uuid> lost;
  for (const auto& [id, worker] : all()) {
    if (worker.state == WorkerState::kLost && worker.heard_at < instant) lost.push_back(id);
  }
  for (const Uuid& id : lost) Remove(id);
}

void WorkerRegistry::ForgetOneLost(const KeyText* key) {
  const auto order = [](const Worker& worker) {
    return std::pair(static_cast<bool>(QuarantineOf(worker)), worker.heard_at);
  };
  const Worker* first = nullptr;
  for (const auto& [id, worker] : all()) {
    if (worker.state != WorkerState::kLost || (key != nullptr && worker.key != *key)) continue;
    if (first == nullptr || order(worker) < order(*first)) first = &worker;
  }
  if (first != nullptr) Remove(first->id());
}

void WorkerRegistry::ForgetReplaced(const Worker& changed) {
  const auto host = std::ranges::find_if(changed.labels, IsHostLabel);
  if (host == changed.labels.end()) return;
  Worker* newcomer = nullptr;       // the newest that has replaced none yet
  const Worker* longest = nullptr;  // of the lost ones, the longest silent
  for (const Uuid& id : by_host_.at(*host)) {
    ++rows_seen_;
    Worker& worker = workers_.at(id);
    if (worker.device() != changed.device() || worker.key != changed.key) continue;
    if (worker.state == WorkerState::kLost) {
      // It may come back with what it measured in quarantine.
      if (QuarantineOf(worker)) continue;
      if (longest == nullptr || worker.heard_at < longest->heard_at) longest = &worker;
    } else if (!worker.has_replaced) {
      if (newcomer == nullptr || worker.known_since > newcomer->known_since) newcomer = &worker;
    }
  }
  if (newcomer == nullptr || longest == nullptr) return;
  if (newcomer->known_since <= longest->heard_at) return;  // both were there at one time
  newcomer->has_replaced = true;
  Remove(longest->id());
}

bool WorkerRegistry::IsCandidate(const Worker& worker) const {
  if (worker.state != WorkerState::kReady || !worker.peer || worker.reservation) return false;
  const std::uint32_t worth =
      WorthSending(refill_, {.job_took = worker.job_took.value(), .credit = worker.facts.credit});
  return worker.FreeCredit() >= (worker.is_refilled ? 1 : worth);
}

void WorkerRegistry::Unrank(Worker& worker) {
  if (worker.rank != 0) CandidatesOf(worker).erase(worker.rank);
  worker.rank = 0;
}

void WorkerRegistry::Rerank(Worker& worker) {
  Unrank(worker);
  if (!IsCandidate(worker)) return;
  worker.rank = ++last_rank_;
  worker.ranked_as = worker.running.empty() ? Load::kIdle : Load::kBusy;
  CandidatesOf(worker).emplace(worker.rank, &worker);
}

void WorkerRegistry::TakeShape(Worker& worker) {
  const auto [shape, is_new] = shapes_.try_emplace(ShapeOf(worker.supply()));
  if (is_new) shape->second.number = ++last_shape_;
  worker.availability = AvailabilityOf(worker);
  ++shape->second.workers[worker.availability];
  worker.shape = &*shape;
  by_name_[worker.facts.name].insert(worker.id());
  for (const std::string& label : worker.labels) {
    if (IsHostLabel(label)) by_host_[label].insert(worker.id());
  }
}

void WorkerRegistry::LeaveShape(Worker& worker) {
  if (worker.shape == nullptr) return;
  auto& workers = worker.shape->second.workers;
  if (--workers.at(worker.availability) == 0) workers.erase(worker.availability);
  if (workers.empty()) shapes_.erase(shapes_.find(worker.shape->first));
  worker.shape = nullptr;
  const auto named = by_name_.find(worker.facts.name);
  named->second.erase(worker.id());
  if (named->second.empty()) by_name_.erase(named);
  for (const std::string& label : worker.labels) {
    const auto there = by_host_.find(label);
    if (there == by_host_.end()) continue;
    there->second.erase(worker.id());
    if (there->second.empty()) by_host_.erase(there);
  }
}

void WorkerRegistry::CheckInvariants() const {
  std::size_t connected = 0;
  std::size_t candidates = 0;
  std::map<const Shapes::value_type*, std::map<Availability, std::size_t>> users;
  std::map<std::string, std::set<Uuid>, std::less<>> hosts;
  std::map<std::string, std::set<Uuid>> names;
  for (const auto& [id, worker] : workers_) {
    LF_CHECK(id == worker.id(), "worker {} goes by {}", worker.id().ToString(), id.ToString());
    LF_CHECK((worker.rank != 0) == IsCandidate(worker), "worker {} at rank {}", worker.facts.name,
             worker.rank);
    LF_CHECK(worker.rank == 0 || (worker.ranked_as == Load::kIdle) == worker.running.empty(),
             "worker {} with {} jobs is in the wrong line", worker.facts.name,
             worker.running.size());
    LF_CHECK(worker.state != WorkerState::kLost || (!worker.peer && worker.running.empty()),
             "worker {} is lost and has something", worker.facts.name);
    LF_CHECK(worker.shape != nullptr && worker.shape->first == ShapeOf(worker.supply()),
             "worker {} has another's shape", worker.facts.name);
    LF_CHECK(worker.availability == AvailabilityOf(worker), "worker {} is counted as another",
             worker.facts.name);
    ++users[worker.shape][worker.availability];
    names[worker.facts.name].insert(id);
    for (const std::string& label : worker.labels) {
      if (IsHostLabel(label)) hosts[label].insert(id);
    }
    if (worker.rank != 0) ++candidates;
    if (!worker.peer) continue;
    ++connected;
    const auto peer = peers_.find(*worker.peer);
    LF_CHECK(peer != peers_.end() && peer->second == id, "worker {} is not at its connection",
             worker.facts.name);
  }
  LF_CHECK(connected == peers_.size(), "{} connected, {} connections", connected, peers_.size());
  LF_CHECK(users.size() == shapes_.size(), "{} shapes are used, {} known", users.size(),
           shapes_.size());
  for (const auto& [shape, workers] : users) {
    LF_CHECK(shape->second.workers == workers, "the workers of shape {} are counted wrong",
             shape->second.number);
  }
  LF_CHECK(names == by_name_, "{} names are known, of {}", by_name_.size(), names.size());
  LF_CHECK(hosts == by_host_, "{} hosts are known, of {}", by_host_.size(), hosts.size());
  std::size_t ranked = 0;
  for (const auto& of_device : candidates_) ranked += of_device[0].size() + of_device[1].size();
  LF_CHECK(candidates == ranked, "{} candidates, {} are ranked", candidates, ranked);
}

}  // namespace loopfleet::coordinator
