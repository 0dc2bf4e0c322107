#pragma once
// RequestQueue: requests of clients that the event loop has not looked at yet. A submission takes
// the loop from microseconds to a tenth of a second, so clients share its time, not its messages
// (fair_queue.h). Bounded in bytes. Belongs to the event loop.

#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/failure.h"
#include "common/wire/transport/received.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/shell/fair_queue.h"

namespace loopfleet::coordinator {

class RequestQueue {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
  explicit RequestQueue(std::size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  // Why there is no room for it, if there is none; the request is unchanged then. A client with
  // nothing queued always has room for one request; further ones have room within a quarter of what
  // is free. All together: max_bytes, and one request of each client.
  std::optional<Failure> Add(const Uuid& client, wire::Received& request);
  // Not while empty. Charge() the time it took before the next one is taken.
  std::pair<Uuid, wire::Received> Take() { return queue_.Pop(); }
  void Charge(const Uuid& client, Nanos time) {
    queue_.Charge(client, static_cast<std::uint64_t>(time.count()));
  }
  // Queued requests that came with one of these keys lose their authorization.
  void Revoke(const std::set<KeyText>& keys);
  bool empty() const { return queue_.empty(); }
  std::size_t bytes() const { return queue_.bytes(); }
  std::size_t client_count() const { return queue_.client_count(); }  // that are remembered

 private:
  const std::size_t max_bytes_;
  FairQueue<wire::Received> queue_;
};

}  // namespace loopfleet::coordinator
