#pragma once
// RequestTurns: what clients asked and nobody has looked at yet. A submission takes the event loop
// from microseconds to a tenth of a second, so whose turn it is goes by time and not by messages:
// next is a request of the client that has had the least, whatever its connections and however many
// requests it sent. Who asks for little waits for one request of another, and what one client asks
// is answered in its order. A client that is alone has all the time there is.
//
// Invariant: exactly the clients that wait for something, and have no turn, are in `turns_`, once.

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/failure.h"
#include "common/wire/transport/socket.h"
#include "coordinator/core/contract/event.h"

namespace loopfleet::coordinator {

class RequestTurns {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
  explicit RequestTurns(std::size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  // Why there is no room for it, if there is none; the request is as it was then. A client of which
  // nothing waits always has room for one; further ones wait only within a quarter of what is free.
  // All together: max_bytes, and one request for each client.
  std::optional<Failure> Add(const Uuid& client, wire::Received& request);
  // Of the client that has had the least time. Not while empty. Before the next one is taken, say
  // what it cost.
  std::pair<Uuid, wire::Received> Take();
  void Charge(const Uuid& client, Nanos time);
  // From now on nothing that waits is of an authorized sender if it came with one of these.
  void Revoke(const std::set<KeyText>& keys);
  bool empty() const { return turns_.empty(); }
  std::size_t bytes() const { return bytes_; }                  // of all
  std::size_t client_count() const { return clients_.size(); }  // that are remembered

 private:
  struct Client {
    Nanos used{};
    std::size_t bytes = 0;
    std::deque<wire::Received> waiting;
  };
  void ForgetThoseWhoWereServed();

  const std::size_t max_bytes_;
  std::map<Uuid, Client> clients_;
  std::set<std::pair<Nanos, Uuid>> turns_;  // by the time they have had
  // What the client whose turn it was last had had. Who comes now has had that, too: nobody saves
  // up time by asking for nothing.
  Nanos least_used_{};
  std::size_t bytes_ = 0;
  std::size_t forget_at_ = 1024;  // clients
};

}  // namespace loopfleet::coordinator
