#pragma once
// Observer: what the core says it did, as metrics and log lines; and the fleet's gauges.

#include "coordinator/core.h"
#include "coordinator/effect.h"
#include "monitoring/metrics.h"

namespace loopfleet::coordinator {

// Every label value there can be, for CoordinatorMetrics.
monitoring::CoordinatorLabels AllLabels();

class Observer {
 public:
  explicit Observer(monitoring::CoordinatorMetrics& metrics) : metrics_(metrics) {}

  void Observe(const Observation& observation);
  void ShowFleet(const Core& core, Moment now);

 private:
  void ShowOldestQueued(const Core& core, Moment now);

  monitoring::CoordinatorMetrics& metrics_;
  Instant next_look_at_queue_{};
};

}  // namespace loopfleet::coordinator
