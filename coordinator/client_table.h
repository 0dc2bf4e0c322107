#pragma once
// ClientTable: which client is behind a connection that said hello, and the submissions that are on
// their way to disk, so that a repeat of one waits for the same answer.
//
// Invariant: a request is here exactly while its acceptance is being written or held back; storage
// has those that are accepted. So a repeat finds it either here or there (see Submission::seen).

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "coordinator/event.h"

namespace loopfleet::coordinator {

struct Asker {
  PeerId peer;
  std::uint64_t number = 0;
  friend auto operator<=>(const Asker&, const Asker&) = default;
};

struct RequestKey {
  Uuid client;
  Uuid request;
  friend auto operator<=>(const RequestKey&, const RequestKey&) = default;
};

struct PendingRequest {
  std::string digest;
  Asker asker;  // the latest one: the request may come again over a new connection
};

class ClientTable {
 public:
  // Beyond `max_clients` the longest silent one is forgotten: it has to say hello again.
  void Greet(const PeerId& peer, const Uuid& client, Instant now, std::size_t max_clients);
  // Whose connection this is, if it said hello; notes that it is alive.
  std::optional<Uuid> Hear(const PeerId& peer, Instant now);
  std::optional<Uuid> ClientOf(const PeerId& peer) const;
  void RemovePeer(const PeerId& peer);
  std::size_t sessions() const { return sessions_.size(); }

  PendingRequest* FindPending(const RequestKey& key);
  void AddPending(const RequestKey& key, PendingRequest request);
  PendingRequest TakePending(const RequestKey& key);

 private:
  struct Session {
    Uuid client;
    Instant heard_at{};
  };
  std::map<PeerId, Session> sessions_;
  std::set<std::pair<Instant, PeerId>> by_heard_;
  std::map<RequestKey, PendingRequest> pending_;
};

}  // namespace loopfleet::coordinator
