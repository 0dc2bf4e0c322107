#pragma once
// Session: this worker's side of the protocol with its coordinator. Says hello, takes leases, sends
// reports and keeps them until they are stored, and is heard at the interval that it is told. A
// coordinator that goes away is waited for without end. Belongs to the thread that calls Run;
// RequestDrain may be called from any.

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/wire/message.h"
#include "common/wire/socket.h"
#include "monitoring/metrics.h"
#include "worker/lease_runner.h"
#include "worker/pulse.h"
#include "worker/timing/device_watch.h"

namespace loopfleet::worker {

class Session {
 public:
  struct Options {
    std::string coordinator;                         // endpoint
    std::chrono::milliseconds hello_interval{1000};  // until a hello is answered
    std::uint32_t silent_intervals = 3;              // heartbeats unanswered: say hello again
    std::chrono::milliseconds longest_wait{200};     // of one turn of the loop
    // After the last job of a drain, how long its reports may take to be stored.
    std::chrono::milliseconds drain_limit{15'000};
    std::uint32_t max_reports_per_message = 64;
  };
  // All of it outlives the session. `wakeup` is to be signalled when the runner has reports.
  struct Parts {
    wire::Context& context;
    wire::Wakeup& wakeup;
    LeaseRunner& runner;
    monitoring::WorkerMetrics& metrics;
    const Clock& clock;
    Pulse& pulse;                            // beats once each turn
    std::function<CanaryHealth()> canaries;  // what each heartbeat says of them
    // That the coordinator wants times to be stated at.
    std::function<void(double mhz)> set_reference_clock;
    std::function<Status()> check_children;  // an error ends the session: nothing can run any more
  };
  // `hello` is what the worker says of itself; `held` is filled in here.
  Session(const Options& options, const Parts& parts, wire::WorkerHello hello);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Returns once drained. An error: the coordinator refuses this worker for good (kInvalid), or
  // check_children failed.
  Status Run();

  // Takes nothing new, finishes what is being timed, gives the rest back, and Run returns.
  void RequestDrain();

 private:
  struct Unstored {
    wire::Report report;
    bool is_sent = false;
  };

  Status Connect();
  Status ReceiveAll();
  Status Handle(wire::WorkerWelcome welcome);
  Status Handle(wire::Leases leases);
  Status Handle(const wire::ReportsStored& stored);
  Status Handle(const wire::Revoke& revoke);
  Status Handle(const wire::HeartbeatAnswer&);
  Status Handle(const wire::HelloWanted&);
  Status Handle(const wire::Refused& refused);
  Status Handle(const wire::UnknownMember& unknown);

  void TakeFinished();
  void SendReports();
  void SendHelloIfDue(Instant now);
  void SendHeartbeatIfDue(Instant now);
  Status NoticeSilence(Instant now);
  void StartDrain();
  bool IsDrained(Instant now);
  void SayGoodbye();
  bool Send(const wire::WorkerMessage& message);
  std::vector<wire::HeldLease> Held() const;
  Nanos TimeToNextTimer(Instant now) const;
  void SetRegistered(bool registered);

  const Options options_;
  const Parts parts_;
  wire::WorkerHello hello_;
  std::optional<wire::Dealer> dealer_;
  std::optional<wire::Poller> poller_;  // of dealer_ and the wakeup

  bool is_registered_ = false;  // the last hello was answered
  Instant next_hello_{};
  Instant next_heartbeat_{};
  Instant last_heard_{};
  Nanos heartbeat_interval_{};
  std::map<LeaseId, Unstored> unstored_;  // bounded: leases are, and a lease ends when it is stored

  std::atomic<bool> drain_requested_{false};
  bool is_draining_ = false;
  std::vector<LeaseId> returned_;      // given back by the drain
  std::optional<Instant> idle_since_;  // of a drain: nothing runs any more
};

}  // namespace loopfleet::worker
