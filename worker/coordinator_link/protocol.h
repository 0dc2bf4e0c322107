#pragma once
// Protocol: what a worker sends to its coordinator (hello, heartbeats, reports), and when. A state
// machine without sockets, threads or a clock of its own, so the same code runs in the daemon
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
    std::uint32_t silent_intervals = 3;              // heartbeats unanswered before a new hello
    // After the last job of a drain, how long to wait for its reports to be acknowledged as stored.
    std::chrono::milliseconds drain_limit{15'000};
    std::uint32_t max_reports_per_message = 64;
    // Canary health for each heartbeat. The default is for workers without canaries.
    std::function<CanaryHealth()> canaries = [] { return CanaryHealth{}; };
    // A report not acknowledged as stored within this time is sent again. The wait doubles with
    // each retry, up to the longest.
    std::chrono::milliseconds report_patience{5'000};
    std::chrono::milliseconds longest_report_patience{60'000};
    // How long a report waits to be batched with others that are about to finish.
    std::chrono::milliseconds linger{2};
  };
  // The connection under the protocol.
  class Line {
   public:
    virtual ~Line() = default;
    virtual bool Send(const wire::WorkerMessage& message) = 0;  // false: it can take no more now
    virtual Status Reconnect() = 0;  // opens a new connection, including the first one
  };
  enum class Phase { kGoesOn, kOver };

  // `line` and `runner` outlive it. `hello` describes the worker; its `held` is filled in here.
  Protocol(const Options& options, Line& line, LeaseRunner& runner, wire::WorkerHello hello);

  Status Open(Instant now);  // call before anything else
  // The transport reconnected by itself. A restarted coordinator reassigns this worker's leases
  // unless it soon hears that the worker still holds them.
  void ConnectedAgain(Instant now);
  // Handles one message. kInvalid: the coordinator refuses this worker permanently.
  Status Hear(wire::WorkerCommand command, Instant now);
  // Sends what is due. Call after every Hear, when the runner has reports, and at NextTimer().
  // kOver: drained, and the goodbye was sent.
  Result<Phase> Step(Instant now);
  Instant NextTimer() const;

  // Accepts no more leases, finishes the one being timed, and returns the rest.
  void StartDrain(Instant now);
  bool is_draining() const { return is_draining_; }
  bool is_registered() const { return is_registered_; }  // the last hello was answered

 private:
  struct Unstored {
    wire::Report report;
    Instant finished_at{};
    std::optional<Instant> sent_at;  // none: to be sent
    Nanos patience{};                // time until it is sent again
    bool is_replaced = false;        // by a failure, as the coordinator could not read the original
  };
  struct Hearer;  // one overload per kind of command

  Status Reconnect(Instant now);
  Status OnRevoked(Instant now);
  void Refuse(const wire::UnreadableLease& lease, Instant now);
  void TakeFinished(Instant now);
  void GiveBack(const wire::HeldLease& lease);
  void KeepForReturn(const std::vector<wire::HeldLease>& held, const std::vector<LeaseId>& dropped);
  void SendReturned();
  void SendCodeLookups();
  void SendBlobQuestions();
  bool Lingers(Instant now) const;
  void SendReports(Instant now);
  void ResendPending();
  void OnUnreadable(const std::string& why);
  void SendHelloIfDue(Instant now);
  void SendHeartbeatIfDue(Instant now);
  Status NoticeSilence(Instant now);
  bool IsDrained(Instant now);
  void SayGoodbye();
  // All that it tells the coordinator of; more than kMaxLeasesPerMessage could not be read.
  std::vector<wire::HeldLease> Held() const;

  const Options options_;
  Line& line_;
  LeaseRunner& runner_;
  wire::WorkerHello hello_;

  bool is_registered_ = false;
  bool has_said_hello_ = false;
  bool has_told_silence_ = false;
  bool answers_code_lookups_ = false;  // the coordinator of the last welcome does
  bool sends_blobs_ = false;           // likewise
  bool keeps_blobs_ = false;           // likewise
  Instant next_hello_{};
  Instant next_heartbeat_{};
  Instant last_heard_{};
  Nanos heartbeat_interval_{};
  std::map<LeaseId, Unstored> unstored_;  // with the other leases at most kMaxLeasesPerMessage

  // Set after the coordinator could not read a message: reports then go one at a time, each waiting
  // for the answer to the one before, to identify the unreadable one.
  bool is_cautious_ = false;
  std::optional<LeaseId> alone_;  // the report in flight while is_cautious_

  // Dropped by a drain, or because the coordinator asked. Held, for it, until it revokes them, as
  // it does when a heartbeat lists a lease that it has taken back: the message that returns them
  // may be lost.
  std::vector<wire::HeldLease> given_back_;
  bool has_told_returned_ = false;  // since the last heartbeat
  Instant next_linger_{};           // when the lingering reports are to be sent

  bool is_draining_ = false;
  bool has_told_drain_ = false;        // the last heartbeat did
  std::optional<Instant> idle_since_;  // set while draining, when no lease is unfinished
};

}  // namespace loopfleet::worker
