#pragma once
// Observer: turns the core's observations into metrics, log lines and events, and takes the fleet's
// snapshots. Belongs to the event loop's thread.

#include <map>

#include "common/base/clock.h"
#include "coordinator/core/contract/effect.h"
#include "coordinator/core/core.h"
#include "coordinator/shell/fleet_snapshot.h"
#include "coordinator/shell/fleet_status.h"
#include "coordinator/shell/log_rate_limit.h"
#include "coordinator/shell/tally.h"
#include "monitoring/metrics.h"

namespace loopfleet::coordinator {

// Work of the event loop that metrics count beside the core's events (kEventNames).
inline constexpr std::string_view kAdmissionSlice = "admission";  // of a submission
inline constexpr std::string_view kPageRead = "page";

// Every possible label value, for CoordinatorMetrics.
monitoring::CoordinatorLabels AllLabels();

// Sets the gauges that show the fleet. Any thread may call it.
void ShowFleet(const FleetModel& fleet, const wire::FleetHealth& health,
               monitoring::CoordinatorMetrics& metrics);

class Observer {
 public:
  Observer(monitoring::CoordinatorMetrics& metrics, FleetStatus& status, const Clock& clock)
      : metrics_(metrics), status_(status), clock_(clock) {}

  void Observe(const Observation& observation);
  FleetSnapshot Look(const Core& core, Moment now);
  FleetStatus& status() { return status_; }

 private:
  monitoring::CoordinatorMetrics& metrics_;
  FleetStatus& status_;
  const Clock& clock_;
  Tally tally_;
  // Of log lines that a worker can cause with each message.
  std::map<WorkerChange, LogRateLimit> change_logs_;
  LogRateLimit implausible_log_;
  LogRateLimit unreadable_log_;
};

}  // namespace loopfleet::coordinator
