#pragma once
// The worker's part of the task "probe" (common/job/probe.h).

#include <expected>

#include "common/job/failure.h"
#include "common/job/hardware_facts.h"
#include "common/job/observed.h"
#include "worker/processes/timing_slot.h"

namespace loopfleet::worker {

// Measures the timing core alone, for about a second. Rates are stated at the reference clock of
// `hardware`; a latency is missing where the host does not say how large the cache is.
// UNSTABLE_TIMING: other workers kept the core.
std::expected<Observed, Failure> ObservePeaks(TimingSlot& slot, const HardwareFacts& hardware);

}  // namespace loopfleet::worker
