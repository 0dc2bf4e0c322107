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
#include "common/base/result.h"
#include "common/fleet/fleet_model.h"
#include "common/job/failure.h"
#include "common/wire/message.h"
#include "coordinator/core/contract/effect.h"
#include "coordinator/shell/event_feed.h"
#include "coordinator/shell/job_steps.h"

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
  // Why the database cannot be written; adds an event when its disk fills or has room again.
  void SetStorageTrouble(std::optional<ErrorKind> trouble);
  void SetMirror(MirrorModel mirror);
  void Stopping();
  void AddSteps(const Tally& tally, Moment now) { steps_.Add(tally, now); }
  const JobSteps& steps() const { return steps_; }

  // Adds what the shell knows to the core's part of the model (core/handlers/show_fleet.h).
  void AddTo(FleetModel& fleet) const;
  // The reply: the fleet, its health, and this coordinator's counts and events.
  wire::FleetInfo Complete(FleetModel fleet, const wire::ShowFleet& question) const;

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
  std::optional<ErrorKind> storage_trouble_;
  std::optional<MirrorModel> mirror_;  // none: no PostgreSQL is used
  JobSteps steps_;
};

std::string_view NameOf(WorkerChange change);  // "joined"

}  // namespace loopfleet::coordinator
