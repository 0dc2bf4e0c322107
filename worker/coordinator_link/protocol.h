#pragma once
// Protocol: what a worker says to its coordinator, and when. A state machine: it knows no
// socket, thread or clock, so that the same code runs in the daemon
// (worker/coordinator_link/connection.h) and in the simulation (tests/simulation). One thread at a
// time.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/wire/message.h"
#include "worker/coordinator_link/lease_runner.h"
#include "worker/timing/device_health.h"

namespace loopfleet::worker {

class Protocol {
 public:
  struct Options {
    std::chrono::milliseconds hello_interval{1000};  // until a hello is answered
    std::uint32_t silent_intervals = 3;              // heartbeats unanswered: say hello again
    // After the last job of a drain, how long its reports may take to be stored.
    std::chrono::milliseconds drain_limit{15'000};
    std::uint32_t max_reports_per_message = 64;
    // What each heartbeat says of the canaries; a worker without any can say nothing.
    std::function<CanaryHealth()> canaries = [] { return CanaryHealth{}; };
    // A report that is not said to be stored within this time is sent again; then after twice the
    // time, and so on up to the longest.
    std::chrono::milliseconds report_patience{5'000};
    std::chrono::milliseconds longest_report_patience{60'000};
    // How long a report waits for others to go with it, while more are to come.
    std::chrono::milliseconds linger{2};
  };
  // The connection that it speaks over.
  class Line {
   public:
    virtual ~Line() = default;
    virtual bool Send(const wire::WorkerMessage& message) = 0;  // false: it takes no more now
    virtual Status Reconnect() = 0;  // a new connection, also the first one
  };
  enum class Phase { kGoesOn, kOver };

  // `line` and `runner` outlive it. `hello` is what the worker says of itself; `held` is filled in
  // here.
  Protocol(const Options& options, Line& line, LeaseRunner& runner, wire::WorkerHello hello);

  Status Open(Instant now);  // first of all
  // The line was lost and is there again by itself: a coordinator that was restarted gives what
  // this worker holds to others unless it hears soon who has it.
  void ConnectedAgain(Instant now);
  // A message has come. kInvalid: the coordinator refuses this worker for good.
  Status Hear(wire::WorkerCommand command, Instant now);
  // Says what is due; to be called after every Hear, when the runner has reports, and at
  // NextTimer(). kOver: drained, and goodbye was said.
  Result<Phase> Step(Instant now);
  Instant NextTimer() const;

  // Takes nothing new, finishes what is being timed, and gives the rest back.
  void StartDrain(Instant now);
  bool is_draining() const { return is_draining_; }
  bool is_registered() const { return is_registered_; }  // the last hello was answered

 private:
  struct Unstored {
    wire::Report report;
    Instant finished_at{};
    std::optional<Instant> sent_at;  // none: it is to be sent
    Nanos patience{};                // then sent again
    bool is_replaced = false;        // by a failure: the coordinator could not read the original
  };
  struct Hearer;  // one overload for each kind of command

  Status Reconnect(Instant now);
  Status OnRevoked(Instant now);
  void TakeFinished(Instant now);
  void SendReturned();
  bool Lingers(Instant now) const;
  void SendReports(Instant now);
  void SendAllAgain();
  void OnUnreadable(const std::string& why);
  void SendHelloIfDue(Instant now);
  void SendHeartbeatIfDue(Instant now);
  Status NoticeSilence(Instant now);
  bool IsDrained(Instant now);
  void SayGoodbye();
  std::vector<wire::HeldLease> Held() const;

  const Options options_;
  Line& line_;
  LeaseRunner& runner_;
  wire::WorkerHello hello_;

  bool is_registered_ = false;
  Instant next_hello_{};
  Instant next_heartbeat_{};
  Instant last_heard_{};
  Nanos heartbeat_interval_{};
  std::map<LeaseId, Unstored> unstored_;  // bounded: leases are, and a lease ends when it is stored

  // After a message that the coordinator could not read: reports go one by one, each waiting for
  // the answer to the one before it, so that it shows which one is to blame.
  bool is_cautious_ = false;
  std::optional<LeaseId> alone_;  // the one under way

  std::vector<LeaseId> given_back_;  // as asked, and not said yet
  Instant next_linger_{};            // when what lingers is to be sent

  bool is_draining_ = false;
  std::vector<LeaseId> returned_;      // given back by the drain
  std::optional<Instant> idle_since_;  // of a drain: nothing runs any more
};

}  // namespace loopfleet::worker
