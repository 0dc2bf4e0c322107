#include "coordinator/core/tables/long_poll_table.h"

#include <utility>

#include "common/base/check.h"

namespace loopfleet::coordinator {

void LongPollTable::Add(Waiter waiter) {
  if (const auto old = waiters_.find(waiter.asker); old != waiters_.end()) Take(old);
  by_batch_.emplace(waiter.fetch.batch, waiter.fetch.after_sequence, waiter.asker);
  by_deadline_.emplace(waiter.deadline, waiter.asker);
  ++per_client_[waiter.client];
  Asker asker = waiter.asker;
  waiters_.emplace(std::move(asker), std::move(waiter));
}

Waiter LongPollTable::Take(Waiters::iterator entry) {
  Waiter waiter = std::move(entry->second);
  waiters_.erase(entry);
  by_batch_.erase({waiter.fetch.batch, waiter.fetch.after_sequence, waiter.asker});
  by_deadline_.erase({waiter.deadline, waiter.asker});
  const auto count = per_client_.find(waiter.client);
  if (--count->second == 0) per_client_.erase(count);
  return waiter;
}

std::vector<Waiter> LongPollTable::TakeReady(BatchId batch, std::uint64_t durable) {
  std::vector<Waiter> ready;
  while (true) {  // each pass removes one
    const auto first = by_batch_.lower_bound({batch, 0, Asker{}});
    if (first == by_batch_.end() || std::get<0>(*first) != batch) break;
    if (std::get<1>(*first) >= durable) break;  // sorted by after_sequence
    ready.push_back(Take(waiters_.find(std::get<2>(*first))));
  }
  return ready;
}

std::vector<Waiter> LongPollTable::TakeAllOf(BatchId batch) {
  std::vector<Waiter> all;
  while (true) {  // each pass removes one
    const auto first = by_batch_.lower_bound({batch, 0, Asker{}});
    if (first == by_batch_.end() || std::get<0>(*first) != batch) break;
    all.push_back(Take(waiters_.find(std::get<2>(*first))));
  }
  return all;
}

std::vector<Waiter> LongPollTable::TakeExpired(Instant now) {
  std::vector<Waiter> expired;
  while (!by_deadline_.empty() && by_deadline_.begin()->first <= now) {
    expired.push_back(Take(waiters_.find(by_deadline_.begin()->second)));
  }
  return expired;
}

void LongPollTable::RemovePeer(const PeerId& peer) {
  auto waiter = waiters_.lower_bound(Asker{.peer = peer, .number = 0});
  while (waiter != waiters_.end() && waiter->first.peer == peer) {
    const auto next = std::next(waiter);
    Take(waiter);
    waiter = next;
  }
}

void LongPollTable::RemoveByKeys(const std::set<KeyText>& keys) {
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    const auto next = std::next(waiter);
    if (keys.contains(waiter->second.key)) Take(waiter);
    waiter = next;
  }
}

std::size_t LongPollTable::CountOf(const Uuid& client) const {
  const auto count = per_client_.find(client);
  return count == per_client_.end() ? 0 : count->second;
}

void LongPollTable::CheckInvariants() const {
  LF_CHECK(by_batch_.size() == waiters_.size() && by_deadline_.size() == waiters_.size(),
           "{} waiters, {} by batch, {} by deadline", waiters_.size(), by_batch_.size(),
           by_deadline_.size());
  std::size_t counted = 0;
  for (const auto& [client, count] : per_client_) counted += count;
  LF_CHECK(counted == waiters_.size(), "{} waiters, {} counted", waiters_.size(), counted);
}

}  // namespace loopfleet::coordinator
