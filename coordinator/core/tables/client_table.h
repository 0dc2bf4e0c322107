#pragma once
// ClientTable: the client of each connection that said hello, and the submissions on their way to
// disk, so that a repeated submission waits for the same answer.
//
// Invariant: a request is here exactly while its acceptance is being written or held back; storage
// has the accepted ones. So a repeat finds it either here or there (see Submission::seen).

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "coordinator/core/contract/event.h"

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
  Asker asker;  // the latest one: the request may be repeated over a new connection
};

// A client that says hello.
struct Guest {
  Uuid client;
  KeyText key = {};
};
struct GuestLimits {
  std::size_t max_connections = 0;
  std::size_t max_connections_per_client = 0;
};

class ClientTable {
 public:
  // Beyond a limit the longest silent connection (of all, or of this client) is forgotten, and has
  // to say hello again.
  void Greet(const PeerId& peer, const Guest& guest, Instant now, const GuestLimits& limits);
  // The client of this connection; nullopt unless it said hello with the key of this message: a
  // peer chooses its routing id itself and could use another's. Hear also notes that it is alive.
  std::optional<Uuid> Hear(const PeerId& peer, const KeyText& key, Instant now);
  std::optional<Uuid> ClientOf(const PeerId& peer, const KeyText& key) const;
  // The client that a request is charged to. Connections without a hello share one account; with
  // keys, one account per key.
  Uuid PayerOf(const PeerId& peer, const KeyText& key) const;
  void RemovePeer(const PeerId& peer);
  // The connections that use one of these keys.
  std::vector<PeerId> PeersWith(const std::set<KeyText>& keys) const;

  // The submissions of this connection that are on their way to disk get no answer.
  void ForgetAsker(const PeerId& peer);
  PendingRequest* FindPending(const RequestKey& key);
  void AddPending(const RequestKey& key, PendingRequest request);
  PendingRequest TakePending(const RequestKey& key);

 private:
  using ByHeard = std::set<std::pair<Instant, PeerId>>;
  struct Session {
    Guest guest;
    Instant heard_at{};
  };
  void NoteHeard(const PeerId& peer, const Session& session);
  void ForgetHeard(const PeerId& peer, const Session& session);

  std::map<PeerId, Session> sessions_;
  ByHeard by_heard_;
  std::map<Uuid, ByHeard> by_client_;
  std::map<RequestKey, PendingRequest> pending_;
};

}  // namespace loopfleet::coordinator
