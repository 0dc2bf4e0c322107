#pragma once
// FleetModel: the fleet at one moment, as people see it. The coordinator builds it; the page,
// `loopfleet status`, `top`, /healthz and the metrics all show this model, and attention.h says
// what of it needs attention.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/fleet/mirror_model.h"
#include "common/job/job_spec.h"
#include "common/wire/message.h"

namespace loopfleet {

struct FleetModel {
  std::uint64_t epoch = 0;
  bool is_stopping = false;  // the coordinator is
  std::vector<wire::WorkerInfo> workers;
  std::array<std::size_t, 3> queued{};  // by Placement
  std::size_t leased = 0;
  std::size_t running_batches = 0;                        // unfinished batches
  std::optional<std::chrono::nanoseconds> oldest_queued;  // acceptance, since 1970; about
  // Waiting jobs that no worker here can run (a lower bound), and why; the first few reasons.
  std::size_t unserved_jobs = 0;
  std::vector<std::string> unserved_reasons;
  std::optional<ErrorKind> storage_trouble;  // why the database cannot be written
  std::optional<MirrorModel> mirror;         // none: no PostgreSQL is used
  // Jobs that ended in the last five minutes.
  std::uint64_t recently_finished = 0;
  std::uint64_t recently_judged = 0;  // without cancelled and cut ones
  std::uint64_t recently_failed = 0;  // of these

  std::size_t Queued() const { return queued[0] + queued[1] + queued[2]; }
  std::size_t Queued(Placement placement) const {
    return queued[static_cast<std::size_t>(placement)];
  }
  std::size_t Workers(wire::WorkerState state) const;  // how many are in this state
};

// The reply's figures that are the model's: the rest are its health and the coordinator's counts
// and events.
wire::FleetInfo FleetInfoOf(const FleetModel& fleet);

}  // namespace loopfleet
