#pragma once
// Connection: the worker's connection to its coordinator, and the loop that serves it. The Protocol
// (worker/coordinator_link/protocol.h) decides what is sent and when. Retries forever while the
// coordinator is unreachable. Belongs to the thread that calls Run; RequestDrain may be called from
// any thread.

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
    std::optional<wire::PeerKeys> keys;  // none: the coordinator is on this machine
    Protocol::Options protocol;
    std::chrono::milliseconds longest_wait{200};  // longest poll in one iteration of the loop
  };
  // All of it outlives the connection. `wakeup` is to be signalled when the runner has reports.
  struct Parts {
    wire::Context& context;
    wire::Wakeup& wakeup;
    LeaseRunner& runner;
    monitoring::WorkerMetrics& metrics;
    const Clock& clock;
    Liveness& liveness;  // beats once per iteration of the loop
    // The clock rate that the coordinator wants times to be stated at.
    std::function<void(double mhz)> set_reference_clock;
    std::function<Status()> check_children;  // an error ends Run: kernels can no longer be run
  };
  // `hello` describes the worker; its `held` is filled in here.
  Connection(const Options& options, const Parts& parts, wire::WorkerHello hello);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Returns once drained. Errors: kInvalid if the coordinator refuses this worker permanently, or
  // the error of check_children.
  Status Run();

  // Accepts no more leases, finishes the one being timed, returns the rest, and then Run returns.
  void RequestDrain();

 private:
  bool Send(const wire::WorkerMessage& message) override;
  Status Reconnect() override;
  Status ReceiveAll();
  void TellHandshake();
  void ShowRegistration();

  const Options options_;
  const Parts parts_;
  std::optional<wire::Dealer> dealer_;  // none: the last attempt to connect failed
  std::optional<wire::Poller> poller_;  // of dealer_ and the wakeup
  Protocol protocol_;
  bool was_registered_ = false;  // as last written to the metrics
  std::atomic<bool> drain_requested_{false};
};

}  // namespace loopfleet::worker
