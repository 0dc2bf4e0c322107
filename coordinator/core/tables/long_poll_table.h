#pragma once
// LongPollTable: the long polls, that is FetchOutcomes that wait for something to fetch.
//
// Invariant: each long poll is indexed by its asker, its batch and its deadline. Its batch is in
// the BatchTable and has nothing on disk after the sequence number it asked for.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/wire/message.h"
#include "coordinator/core/tables/client_table.h"

namespace loopfleet::coordinator {

struct Waiter {
  Asker asker;
  Uuid client;  // the client whose quota it counts against
  KeyText key = {};
  wire::FetchOutcomes fetch;
  Instant deadline{};
};

class LongPollTable {
 public:
  // A second one of the same asker replaces the first: it is the same request, repeated.
  void Add(Waiter waiter);
  std::vector<Waiter> TakeReady(BatchId batch, std::uint64_t durable);
  std::vector<Waiter> TakeAllOf(BatchId batch);
  std::vector<Waiter> TakeExpired(Instant now);
  void RemovePeer(const PeerId& peer);
  void RemoveByKeys(const std::set<KeyText>& keys);

  bool Contains(const Asker& asker) const { return waiters_.contains(asker); }
  std::size_t CountOf(const Uuid& client) const;
  std::size_t size() const { return waiters_.size(); }
  void CheckInvariants() const;

 private:
  using Waiters = std::map<Asker, Waiter>;
  Waiter Take(Waiters::iterator waiter);

  Waiters waiters_;
  std::set<std::tuple<BatchId, std::uint64_t, Asker>> by_batch_;  // with after_sequence
  std::set<std::pair<Instant, Asker>> by_deadline_;
  std::map<Uuid, std::size_t> per_client_;
};

}  // namespace loopfleet::coordinator
