#pragma once
// FairQueue: items of many clients, served so that each client gets an equal share. The next item
// is one of the client that has been charged the least, however many items it has queued; one
// client's items keep their order. A client that queues little waits for one item of each other
// client at most.
//
// Invariant: a client is in `order_` once, exactly while it has items queued and none in service.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/uuid.h"

namespace loopfleet::coordinator {

template <class Item>
class FairQueue {
 public:
  // `bytes`: the item's memory, for owners that limit it.
  void Push(const Uuid& client, Item item, std::size_t bytes = 0) {
    Client& own = clients_[client];
    if (own.items.empty() && in_service_ != client) {
      own.charged = std::max(own.charged, level_);
      order_.emplace(own.charged, client);
    }
    own.items.push_back({.item = std::move(item), .bytes = bytes});
    own.bytes += bytes;
    bytes_ += bytes;
    ++size_;
  }

  // The item that was popped is not done: it is the client's next one again. Before Charge().
  void PutBack(const Uuid& client, Item item, std::size_t bytes = 0) {
    LF_CHECK(in_service_ == client, "another client's item was popped");
    Client& own = clients_.at(client);
    own.items.push_front({.item = std::move(item), .bytes = bytes});
    own.bytes += bytes;
    bytes_ += bytes;
    ++size_;
  }

  // Must not be empty. Charge() the item's cost before the next Pop().
  std::pair<Uuid, Item> Pop() {
    return PopFirst([](const Item&) { return true; });
  }
  // The item of the client charged the least whose next item is eligible; if no item is, the next.
  template <class Predicate>
  std::pair<Uuid, Item> PopFirst(const Predicate& eligible) {
    LF_CHECK(!order_.empty() && !in_service_, "nothing to pop, or the last is not charged");
    auto next = std::ranges::find_if(order_, [&](const auto& place) {
      return eligible(clients_.at(place.second).items.front().item);
    });
    if (next == order_.end()) next = order_.begin();
    const auto [charged, client] = *next;
    order_.erase(next);
    level_ = std::max(level_, charged);
    in_service_ = client;
    Client& own = clients_.at(client);
    Entry entry = std::move(own.items.front());
    own.items.pop_front();
    own.bytes -= entry.bytes;
    bytes_ -= entry.bytes;
    --size_;
    return {client, std::move(entry.item)};
  }

  // `cost` is in any unit, the same for all items of a queue.
  void Charge(const Uuid& client, std::uint64_t cost) {
    LF_CHECK(in_service_ == client, "another client's item was popped");
    in_service_.reset();
    Client& own = clients_.at(client);
    own.charged += cost;
    if (!own.items.empty()) order_.emplace(own.charged, client);
    if (clients_.size() >= forget_at_) ForgetServed();
  }

  // Items may be changed, but not their cost or bytes.
  template <class Change>
  void ForEach(const Change& change) {
    for (auto& [id, client] : clients_) {
      for (Entry& entry : client.items) change(entry.item);
    }
  }
  template <class Predicate>
  void EraseIf(const Predicate& predicate) {
    for (auto& [id, client] : clients_) {
      const bool was_queued = !client.items.empty();
      std::erase_if(client.items, [&](const Entry& entry) {
        if (!predicate(entry.item)) return false;
        client.bytes -= entry.bytes;
        bytes_ -= entry.bytes;
        --size_;
        return true;
      });
      if (was_queued && client.items.empty()) order_.erase({client.charged, id});
    }
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t size_of(const Uuid& client) const {
    const auto found = clients_.find(client);
    return found == clients_.end() ? 0 : found->second.items.size();
  }
  std::size_t bytes_of(const Uuid& client) const {
    const auto found = clients_.find(client);
    return found == clients_.end() ? 0 : found->second.bytes;
  }
  std::size_t client_count() const { return clients_.size(); }  // remembered clients

 private:
  struct Entry {
    Item item;
    std::size_t bytes = 0;
  };
  struct Client {
    std::uint64_t charged = 0;
    std::size_t bytes = 0;
    std::deque<Entry> items;
  };

  // Forgets clients that have nothing queued and are not charged above level_: a new client starts
  // there anyway.
  void ForgetServed() {
    std::erase_if(clients_, [&](const auto& entry) {
      return entry.second.items.empty() && (order_.empty() || entry.second.charged <= level_);
    });
    forget_at_ = std::max<std::size_t>(kForgetAt, 2 * clients_.size());
  }

  static constexpr std::size_t kForgetAt = 1024;

  std::map<Uuid, Client> clients_;
  std::set<std::pair<std::uint64_t, Uuid>> order_;  // by charge
  // Charge of the last client served. New clients start here, so idle clients bank no credit.
  std::uint64_t level_ = 0;
  std::optional<Uuid> in_service_;  // popped and not yet charged
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
  std::size_t forget_at_ = kForgetAt;
};

}  // namespace loopfleet::coordinator
