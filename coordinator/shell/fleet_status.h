#pragma once
// FleetStatus: counts since this coordinator started, and the fleet's events, for `loopfleet
// status`, `top` and `events`. Fed by the Observer. Belongs to the event loop's thread.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/job/failure.h"
#include "common/wire/message.h"
#include "coordinator/core/contract/effect.h"
#include "coordinator/shell/event_feed.h"

namespace loopfleet::coordinator {

class FleetStatus {
 public:
  struct Options {
    std::string version;
  };
  FleetStatus(const Clock& clock, const Options& options);

  void SetHttp(std::string address) { http_ = std::move(address); }
  void Recovered(std::uint64_t epoch, std::size_t batches, std::size_t jobs);
  void Accepted(const JobsWereAccepted& accepted);
  void Finished(const FinishedJob& finished);
  void BatchFinished(const BatchWasFinished& finished);
  void Changed(const WorkerChanged& changed);
  void Implausible(const ReportWasImplausible& report);
  void Disagreed(const WorkersDisagreed& disagreed);
  void SetStorageFull(bool full);  // adds an event when it changes
  void Stopping();
  // The same value as in the metrics; updated about once a second.
  void SetOldestQueued(std::optional<Nanos> since_epoch) { oldest_queued_ = since_epoch; }

  // Adds this coordinator's counts and events to `known`, the core's part of the reply: queue,
  // leases and workers (ShowFleet in core/handlers/on_client.cc).
  wire::FleetInfo Complete(wire::FleetInfo known, const wire::ShowFleet& question) const;

 private:
  const Clock& clock_;
  const std::string version_;
  const WallTime started_at_;
  std::string http_;
  EventFeed events_;
  std::uint64_t accepted_ = 0;
  std::uint64_t finished_ = 0;
  std::uint64_t shared_ = 0;
  std::map<FailureCode, std::uint64_t> failures_;
  std::optional<Nanos> oldest_queued_;
  bool storage_full_ = false;
};

std::string_view NameOf(WorkerChange change);  // "joined"

}  // namespace loopfleet::coordinator
