#pragma once
// Observer: what the core says it did, as metrics and log lines; and the fleet's gauges.

#include "coordinator/core.h"
#include "coordinator/effect.h"
#include "coordinator/tally.h"
#include "monitoring/metrics.h"

namespace loopfleet::coordinator {

// Every label value there can be, for CoordinatorMetrics.
monitoring::CoordinatorLabels AllLabels();

class Observer {
 public:
  explicit Observer(monitoring::CoordinatorMetrics& metrics) : metrics_(metrics) {}

  void Observe(const Observation& observation);
  void ShowFleet(const Core& core);
  const Tally& tally() const { return tally_; }

 private:
  monitoring::CoordinatorMetrics& metrics_;
  Tally tally_;
};

}  // namespace loopfleet::coordinator
