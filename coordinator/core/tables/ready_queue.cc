#include "coordinator/core/tables/ready_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::coordinator {
namespace {

// How far PositionOf counts from either end: takes about 0.3 ms.
constexpr std::size_t kMostCounted = 10'000;

// Most shapes cached; a larger cache is cleared. Limits::max_workers bounds the shapes in use.
constexpr std::size_t kMostShapes = 10'000;

std::int32_t BelowMost(std::int32_t priority) { return kMostPriority - priority; }

std::size_t& CountFor(const Demand& demand, ReadyQueue::DemandCounts& counts) {
  return demand.only.is_nil() ? counts.open : counts.bound;
}

}  // namespace

// ---- entering

ReadyQueue::Lane& ReadyQueue::LaneOf(const Uuid& client) {
  const auto [entry, is_new] = lanes_.try_emplace(client);
  Lane& lane = entry->second;
  if (is_new) {
    lane.client = client;
  } else if (lane.queued == 0) {
    resting_.erase({lane.next_turn, client});
  }
  return lane;
}

ReadyQueue::Shelf& ReadyQueue::ShelfFor(const Demand& demand, const Uuid& client) {
  const auto [of, is_new_demand] = classes_.try_emplace(demand);
  if (is_new_demand) {
    of->second.number = ++last_demand_;
    of->second.names_host = HostNamedBy(demand) != nullptr;
    by_number_.emplace(last_demand_, &*of);
    if (demand.only.is_nil()) ++open_demands_;
  }
  const auto [entry, is_new] = of->second.shelves.try_emplace(client);
  Shelf& shelf = entry->second;
  if (is_new) {
    Lane& lane = LaneOf(client);
    shelf.of = of;
    shelf.lane = &lane;
    shelf.turn = {.turn = std::max(lane.next_turn, turn_), .stamp = ++last_stamp_};
    lane.shelves.push_back(&shelf);
    ++CountFor(demand, lane.demands);
    of->second.order.emplace(shelf.turn, &shelf);
  }
  return shelf;
}

ReadyQueue::Place ReadyQueue::Insert(const Demand& demand, const Uuid& client,
                                     Precedence precedence, JobId job) {
  Shelf& shelf = ShelfFor(demand, client);
  const auto entry = shelf.jobs.emplace_hint(shelf.jobs.end(), precedence, job);
  ++shelf.lane->queued;
  ++shelf.of->second.size;
  ++size_;
  return {&shelf, entry};
}

ReadyQueue::Place ReadyQueue::PushBack(const Entering& entering, const Demand& demand) {
  return Insert(demand, entering.client,
                {.below_most = BelowMost(entering.priority), .order = next_back_++}, entering.job);
}

ReadyQueue::Place ReadyQueue::PushFront(const Entering& entering, const Demand& demand) {
  return Insert(demand, entering.client,
                {.below_most = BelowMost(entering.priority), .order = next_front_--}, entering.job);
}

ReadyQueue::Place ReadyQueue::Move(const Place& place, const Demand& demand) {
  Shelf& from = *place.shelf_;
  if (from.of->first == demand) return place;
  // Insert first: the lane must not become empty.
  const Place moved = Insert(demand, from.lane->client, place.entry_->first, place.entry_->second);
  Take(from, place.entry_);
  return moved;
}

// ---- leaving

void ReadyQueue::Take(Shelf& shelf, Jobs::iterator entry) {
  const auto of = shelf.of;
  Lane& lane = *shelf.lane;
  shelf.jobs.erase(entry);
  --lane.queued;
  --of->second.size;
  --size_;
  if (!shelf.jobs.empty()) return;
  of->second.order.erase(shelf.turn);
  std::erase(lane.shelves, &shelf);
  --CountFor(of->first, lane.demands);
  of->second.shelves.erase(lane.client);
  if (of->second.shelves.empty()) {
    if (of->first.only.is_nil()) --open_demands_;
    by_number_.erase(of->second.number);
    classes_.erase(of);
    ++removed_;
  }
  if (lane.queued == 0) Rest(lane);
}

void ReadyQueue::Remove(const Place& place) { Take(*place.shelf_, place.entry_); }

bool ReadyQueue::Serves(const Supply& supply, const Demand& demand) {
  ++matches_;
  return coordinator::Serves(supply, demand);
}

const ReadyQueue::Matched& ReadyQueue::Match(const Supply& supply) {
  if (matched_.size() > kMostShapes) matched_.clear();
  Matched& matched = matched_[supply.shape];
  if (std::exchange(matched.removed, removed_) != removed_) {
    std::erase_if(matched.classes,
                  [&](const auto& entry) { return !by_number_.contains(entry.first); });
  }
  for (auto of = by_number_.upper_bound(matched.last); of != by_number_.end(); ++of) {
    const Demand& demand = of->second->first;
    if (!demand.only.is_nil()) continue;
    ++matches_;
    if (ShapeServes(supply, demand)) matched.classes.emplace_back(*of);
  }
  matched.last = last_demand_;
  return matched;
}

bool ReadyQueue::ServesMatched(const Supply& supply, const Classes::value_type& of) {
  return !of.second.names_host || Serves(supply, of.first);
}

bool ReadyQueue::IsServed(const Supply& supply, const Matched& matched,
                          const Classes::value_type& of) {
  if (!of.first.only.is_nil() || of.second.names_host) return Serves(supply, of.first);
  return std::ranges::binary_search(matched.classes, of.second.number, {},
                                    [](const auto& entry) { return entry.first; });
}

template <class Visit>
void ReadyQueue::ForEachServed(const Supply& supply, const Visit& visit) {
  for (const auto& [number, of] : Match(supply).classes) {
    ++rows_seen_;
    if (ServesMatched(supply, *of)) visit(*of);
  }
  for (auto of = classes_.lower_bound(Demand{.only = supply.worker, .threads = 0, .labels = {}});
       of != classes_.end() && of->first.only == supply.worker; ++of) {
    if (Serves(supply, of->first)) visit(*of);
  }
}

template <class Wants>
const ReadyQueue::Shelf* ReadyQueue::NextFor(const Supply& supply, const Wants& is_wanted) {
  const Shelf* whose = nullptr;
  ForEachServed(supply, [&](const Classes::value_type& of) {
    if (!is_wanted(of.first)) return;
    const Shelf* shelf = of.second.order.begin()->second;
    if (whose == nullptr || shelf->turn < whose->turn) whose = shelf;
  });
  return whose;
}

std::optional<JobId> ReadyQueue::PopFor(const Supply& supply) {
  return Pop(supply, [](const Demand&) { return true; });
}

std::optional<JobId> ReadyQueue::PopFor(const Supply& supply, const HasWaiters& is_wanted) {
  return Pop(supply, is_wanted);
}

template <class Wants>
std::optional<JobId> ReadyQueue::Pop(const Supply& supply, const Wants& is_wanted) {
  const Shelf* whose = NextFor(supply, is_wanted);
  if (whose == nullptr) return std::nullopt;
  Lane& lane = *whose->lane;
  const Matched& matched = Match(supply);
  served_.clear();
  Shelf* next = nullptr;
  rows_seen_ += lane.shelves.size();
  for (Shelf* shelf : lane.shelves) {
    if (!IsServed(supply, matched, *shelf->of)) continue;
    served_.push_back(shelf);
    if (!is_wanted(shelf->of->first)) continue;
    if (next == nullptr || shelf->jobs.begin()->first < next->jobs.begin()->first) next = shelf;
  }
  const auto first = next->jobs.begin();
  const JobId job = first->second;
  GiveNextTurn(lane, served_);
  Take(*next, first);
  return job;
}

// ---- turns

void ReadyQueue::GiveNextTurn(Lane& lane, const std::vector<Shelf*>& served) {
  ++turn_;
  lane.next_turn = turn_ + WeightOf(lane);
  const Turn turn{.turn = lane.next_turn, .stamp = ++last_stamp_};
  for (Shelf* shelf : served) {
    auto& order = shelf->of->second.order;
    order.erase(shelf->turn);
    shelf->turn = turn;
    order.emplace(turn, shelf);
  }
  while (!resting_.empty() && resting_.begin()->first <= turn_) {
    lanes_.erase(resting_.begin()->second);
    resting_.erase(resting_.begin());
  }
}

void ReadyQueue::Rest(Lane& lane) {
  if (lane.next_turn > turn_) {
    resting_.emplace(lane.next_turn, lane.client);
  } else {
    lanes_.erase(Uuid(lane.client));
  }
}

std::uint64_t ReadyQueue::WeightOf(const Lane& lane) const {
  const Nanos expected = lane.run_time.value();
  const Nanos typical = run_time_.value();
  if (expected == Nanos{0} || typical == Nanos{0}) return 1;
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>((expected + typical / 2) / typical),
                                   1, kMostWeight);
}

void ReadyQueue::Took(const Uuid& client, Nanos duration) {
  if (duration <= Nanos{0}) return;
  run_time_.Add(duration);
  if (const auto lane = lanes_.find(client); lane != lanes_.end()) {
    lane->second.run_time.Add(duration);
  }
}

// ---- inspection

std::size_t ReadyQueue::Size(Placement placement) const {
  std::size_t count = 0;
  for (const auto& [demand, of] : classes_) {
    if (demand.placement == placement) count += of.size;
  }
  return count;
}

ReadyQueue::DemandCounts ReadyQueue::DemandsOf(const Uuid& client) const {
  const auto lane = lanes_.find(client);
  return lane == lanes_.end() ? DemandCounts{} : lane->second.demands;
}

std::vector<Demand> ReadyQueue::Demands(std::size_t most) const {
  std::vector<Demand> demands;
  for (const auto& [demand, of] : classes_) {
    if (demands.size() == most) break;
    demands.push_back(demand);
  }
  rows_seen_ += demands.size();
  return demands;
}

std::vector<ReadyQueue::Group> ReadyQueue::Groups(const Demand& demand) const {
  std::vector<Group> groups;
  const auto of = classes_.find(demand);
  if (of == classes_.end()) return groups;
  for (const auto& [client, shelf] : of->second.shelves) {
    for (auto entry = shelf.jobs.begin(); entry != shelf.jobs.end();) {
      const std::int32_t below = entry->first.below_most;
      groups.push_back({.client = client, .priority = kMostPriority - below});
      entry = shelf.jobs.lower_bound({.below_most = below + 1, .order = INT64_MIN});
    }
  }
  rows_seen_ += groups.size();
  return groups;
}

std::optional<JobId> ReadyQueue::FrontOf(const Demand& demand, const Group& group) const {
  const auto of = classes_.find(demand);
  if (of == classes_.end()) return std::nullopt;
  const auto shelf = of->second.shelves.find(group.client);
  if (shelf == of->second.shelves.end()) return std::nullopt;
  const std::int32_t below = BelowMost(group.priority);
  const auto entry = shelf->second.jobs.lower_bound({.below_most = below, .order = INT64_MIN});
  if (entry == shelf->second.jobs.end() || entry->first.below_most != below) return std::nullopt;
  return entry->second;
}

ReadyQueue::Position ReadyQueue::PositionOf(const Place& place) const {
  const Shelf& shelf = *place.shelf_;
  Position position;
  Jobs::const_iterator before = place.entry_;
  Jobs::const_iterator after = std::next(place.entry_);
  // Searches from both ends at once: most jobs that are asked about are near one of them.
  for (std::size_t step = 0;; ++step) {
    if (before == shelf.jobs.begin()) {
      position.own = step;
      break;
    }
    if (after == shelf.jobs.end()) {
      position.own = shelf.jobs.size() - 1 - step;
      break;
    }
    if (step == kMostCounted) {
      position.own = step;
      position.own_is_exact = false;
      break;
    }
    --before;
    ++after;
  }
  for (const auto& [client, other] : shelf.of->second.shelves) {
    if (&other == &shelf) continue;
    ++position.other_clients;
    // Round robin: as many of their jobs as of its own, and one more if their turn comes first.
    position.others +=
        std::min(other.jobs.size(), position.own + (other.turn < shelf.turn ? 1 : 0));
  }
  return position;
}

const Demand& ReadyQueue::DemandAt(const Place& place) const { return place.shelf_->of->first; }

void ReadyQueue::CheckInvariants() const {
  std::size_t jobs = 0;
  std::size_t open_demands = 0;
  std::map<const Lane*, std::size_t> queued;
  std::map<const Lane*, DemandCounts> counted;
  for (const auto& [demand, of] : classes_) {
    std::size_t size = 0;
    open_demands += demand.only.is_nil() ? 1 : 0;
    LF_CHECK(!of.shelves.empty() && of.order.size() == of.shelves.size(),
             "a demand of {} threads has {} shelves and {} in order", demand.threads,
             of.shelves.size(), of.order.size());
    for (const auto& [client, shelf] : of.shelves) {
      LF_CHECK(!shelf.jobs.empty(), "client {} has an empty shelf", client.ToString());
      LF_CHECK(shelf.lane == &lanes_.at(client), "client {} has another's lane", client.ToString());
      const auto in_order = of.order.find(shelf.turn);
      LF_CHECK(in_order != of.order.end() && in_order->second == &shelf,
               "client {} is out of order", client.ToString());
      LF_CHECK(std::ranges::count(shelf.lane->shelves, &shelf) == 1,
               "client {} does not know its shelf", client.ToString());
      size += shelf.jobs.size();
      queued[shelf.lane] += shelf.jobs.size();
      ++CountFor(demand, counted[shelf.lane]);
    }
    const auto numbered = by_number_.find(of.number);
    LF_CHECK(numbered != by_number_.end() && numbered->second->first == demand,
             "a demand of {} threads is not at its number", demand.threads);
    LF_CHECK(size == of.size, "{} jobs of a demand are counted as {}", size, of.size);
    jobs += size;
  }
  LF_CHECK(open_demands == open_demands_, "{} open demands", open_demands);
  LF_CHECK(by_number_.size() == classes_.size(), "{} demands are numbered", by_number_.size());
  LF_CHECK(jobs == size_, "{} jobs are counted as {}", jobs, size_);
  std::size_t resting = 0;
  for (const auto& [client, lane] : lanes_) {
    LF_CHECK(lane.queued == queued[&lane], "client {} has {} jobs queued", client.ToString(),
             lane.queued);
    LF_CHECK(lane.demands == counted[&lane], "client {} has {} open and {} bound demands",
             client.ToString(), lane.demands.open, lane.demands.bound);
    if (lane.queued > 0) continue;
    ++resting;
    LF_CHECK(resting_.contains({lane.next_turn, client}), "client {} does not rest",
             client.ToString());
  }
  LF_CHECK(resting == resting_.size(), "{} clients rest", resting_.size());
}

}  // namespace loopfleet::coordinator
