#pragma once
// CoreProbe: measures the state of the core under a kernel at this moment. It answers two separate
// questions: does something else use its execution units (a sibling thread, another virtual
// machine)? And what is its clock? Belongs to the thread that times.

#include <cstdint>

namespace loopfleet::worker {

class CoreProbe {
 public:
  virtual ~CoreProbe() = default;
  // The time of a fixed number of independent multiply-adds, enough to keep the units busy, with
  // operands from the first-level cache. Anything that shares the units, the load ports or that
  // cache slows it. About 1.5 us on a quiet core.
  virtual std::uint64_t ThroughputNs() = 0;
  // Probes until one takes no longer than `quiet_ns`. False: none did within the patience.
  virtual bool WaitUntilQuiet(double quiet_ns, std::uint64_t patience_ns) = 0;
  // Timed by a chain of dependent operations of known latency, which a neighbour on the core hardly
  // slows. Takes about 4 or 8 us, 32 us at most; nothing right after another reading. 0: unknown
  // for this processor. A processor may have lowered its clock for the wide vectors of the code
  // that has just run, and raises it within microseconds of other code, so the chain is of vectors
  // of `vector_bytes`; 0: of scalars.
  virtual double ClockMhz(std::uint32_t vector_bytes) = 0;
  // Keeps the clock that code with such vectors has had, for 2 us or more: half a microsecond of
  // such a chain.
  virtual void HoldClock(std::uint32_t vector_bytes) = 0;
  // Involuntary context switches of this thread since it began.
  virtual std::uint64_t Preemptions() = 0;
  // Processor time of this thread since it began.
  virtual std::uint64_t ProcessorNs() = 0;
};

}  // namespace loopfleet::worker
