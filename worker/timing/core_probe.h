#pragma once
// CoreProbe: what the core under a kernel is like at this moment. Two questions, because they have
// different answers: is something else using its execution units (a sibling thread, another virtual
// machine on it)? and what is its clock? Belongs to the thread that times.

#include <cstdint>

namespace loopfleet::worker {

class CoreProbe {
 public:
  virtual ~CoreProbe() = default;
  // How long a fixed number of independent multiply-adds took, as many as keep the units busy, with
  // operands from the first cache: whoever shares units, load ports or that cache shows. About
  // 1.5 us on a quiet core.
  virtual std::uint64_t ThroughputNs() = 0;
  // Probes until one takes no longer than `quiet_ns`. False: none did within the patience.
  virtual bool BecomesQuiet(double quiet_ns, std::uint64_t patience_ns) = 0;
  // From a chain of dependent operations of known latency, which who shares the core hardly slows.
  // About 4 us, or 8, or none at all right after another reading. 0: not known for this processor.
  virtual double ClockMhz() = 0;
  // How often this thread had to leave its core to others since it began.
  virtual std::uint64_t Preemptions() = 0;
  // How much of the core this thread has had since it began.
  virtual std::uint64_t ProcessorNs() = 0;
};

}  // namespace loopfleet::worker
