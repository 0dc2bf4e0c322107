#pragma once
// RequestQueue: clients' requests that the event loop has not handled yet. A submission takes the
// loop from microseconds to seconds, so clients get equal shares of its time, not of messages
// (fair_queue.h), and a long one goes back to the queue after each slice. Bounded in bytes. Belongs
// to the event loop.

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/failure.h"
#include "common/wire/transport/received.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/shell/admission.h"
#include "coordinator/shell/fair_queue.h"

namespace loopfleet::coordinator {

struct QueuedRequest {
  wire::Received received;               // without its frame once it is decoded
  std::size_t bytes = 0;                 // memory that it counts for
  std::unique_ptr<Admission> admission;  // of a submission that has begun
};

class RequestQueue {
 public:
  // Submissions in admission at one time, but for small ones. A submission that has begun takes
  // several times the memory of its frame.
  static constexpr std::size_t kMaxBegun = 8;
  static constexpr std::size_t kSmallBytes = std::size_t{64} << 10;

  explicit RequestQueue(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns why there is no room, leaving the request unchanged; nullopt: added. A client with
  // nothing queued always has room for one request; its further ones may take a quarter of the free
  // bytes. Total: at most max_bytes plus one request per client.
  std::optional<Failure> Add(const Uuid& client, wire::Received& request);
  // Must not be empty. Charge() the time that it took before the next Take().
  std::pair<Uuid, QueuedRequest> Take();
  // A request that is not done stays its client's next one. Before Charge().
  void PutBack(const Uuid& client, QueuedRequest request);
  void Charge(const Uuid& client, Nanos time) {
    queue_.Charge(client, static_cast<std::uint64_t>(time.count()));
  }
  // Queued requests that came with one of these keys lose their authorization.
  void Revoke(const std::set<KeyText>& keys);
  bool empty() const { return queue_.empty(); }
  std::size_t bytes() const { return queue_.bytes(); }
  std::size_t client_count() const { return queue_.client_count(); }  // remembered clients

 private:
  const std::size_t max_bytes_;
  std::size_t begun_ = 0;  // of the queued requests
  FairQueue<QueuedRequest> queue_;
};

}  // namespace loopfleet::coordinator
