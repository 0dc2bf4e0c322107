#pragma once
// Connection: this worker's connection to its coordinator, and the loop that serves it. What is
// said, and when, is the Protocol's to decide (worker/coordinator_link/protocol.h). A coordinator
// that goes away is waited for without end. Belongs to the thread that calls Run; RequestDrain may
// be called from any.

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/wire/message.h"
#include "common/wire/transport/dealer.h"
#include "common/wire/transport/poller.h"
#include "common/wire/transport/wakeup.h"
#include "monitoring/metrics.h"
#include "worker/coordinator_link/lease_runner.h"
#include "worker/coordinator_link/liveness.h"
#include "worker/coordinator_link/protocol.h"

namespace loopfleet::worker {

class Connection final : private Protocol::Line {
 public:
  struct Options {
    std::string coordinator;             // endpoint
    std::optional<wire::PeerKeys> keys;  // without, it is on this machine
    Protocol::Options protocol;
    std::chrono::milliseconds longest_wait{200};  // of one turn of the loop
  };
  // All of it outlives the session. `wakeup` is to be signalled when the runner has reports.
  struct Parts {
    wire::Context& context;
    wire::Wakeup& wakeup;
    LeaseRunner& runner;
    monitoring::WorkerMetrics& metrics;
    const Clock& clock;
    Liveness& liveness;  // beats once each turn
    // That the coordinator wants times to be stated at.
    std::function<void(double mhz)> set_reference_clock;
    std::function<Status()> check_children;  // an error ends the session: nothing can run any more
  };
  // `hello` is what the worker says of itself; `held` is filled in here.
  Connection(const Options& options, const Parts& parts, wire::WorkerHello hello);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Returns once drained. An error: the coordinator refuses this worker for good (kInvalid), or
  // check_children failed.
  Status Run();

  // Takes nothing new, finishes what is being timed, gives the rest back, and Run returns.
  void RequestDrain();

 private:
  bool Send(const wire::WorkerMessage& message) override;
  Status Reconnect() override;
  Status ReceiveAll();
  void TellHandshake();
  void ShowRegistration();

  const Options options_;
  const Parts parts_;
  std::optional<wire::Dealer> dealer_;
  std::optional<wire::Poller> poller_;  // of dealer_ and the wakeup
  Protocol protocol_;
  bool was_registered_ = false;  // as the metrics show it
  std::atomic<bool> drain_requested_{false};
};

}  // namespace loopfleet::worker
