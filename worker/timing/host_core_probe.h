#pragma once
// HostCoreProbe: the CoreProbe of the core that the calling thread runs on.
//
// It probes with the narrower vectors of a set (CoreKernels::narrower). Every core with two units
// begins two of these multiply-adds a cycle, operands from the cache included, so it is known how
// long a quiet core takes. Wide vectors may wait for the cache (an Intel core of family 6 model 207
// takes 1.16 times as many cycles), which is not to be told from a neighbour.

#include "worker/isa/core_kernels.h"
#include "worker/timing/core_probe.h"
#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {

class HostCoreProbe final : public CoreProbe {
 public:
  // Finds how many steps take kThroughputNs on a quiet core; about 1 ms.
  HostCoreProbe(const CoreKernels& kernels, const Stopwatch& stopwatch);
  // Uses the number of steps that another process found, so that both use the same probe.
  HostCoreProbe(const CoreKernels& kernels, const Stopwatch& stopwatch, std::uint64_t steps);

  std::uint64_t ThroughputNs() override;
  // The least time of a probe of no steps: reading the clock, and the call.
  std::uint64_t EmptyNs() const;
  bool WaitUntilQuiet(double quiet_ns, std::uint64_t patience_ns) override;
  double ClockMhz(std::uint32_t vector_bytes) override;
  void HoldClock(std::uint32_t vector_bytes) override;
  std::uint64_t Preemptions() override;  // takes 0.3 us; 0 if the system does not tell
  std::uint64_t ProcessorNs() override;  // takes 0.3 us

  std::uint64_t steps() const { return steps_; }
  // Of a probe, without EmptyNs, if the core's two units do nothing else. 0: unknown.
  double LeastCycles() const;

  // 21 probes around 20 repetitions cost 32 us. The clocks of some hosts tick in steps of 10 ns:
  // 0.7 % of a probe, while contention begins at 5 %.
  static constexpr std::uint64_t kThroughputNs = 1'500;

 private:
  // The kernels whose chain tells the clock of vectors of so many bytes; null: scalars tell it.
  const CoreKernels* KernelsFor(std::uint32_t vector_bytes) const;
  // Cycles of a dependent multiply-add, the same for all widths of a processor; 0: unknown.
  double FindLatency() const;

  const CoreKernels& widest_;
  const CoreKernels& kernels_;  // of the probes
  const Stopwatch& stopwatch_;
  std::uint64_t steps_ = 1;
  double latency_ = 0;                  // FindLatency
  const CoreKernels* chain_ = nullptr;  // of the last reading; null: scalars
  double clock_mhz_ = 0;                // the last reading; 0: none yet
  std::uint64_t clock_read_ns_ = 0;
};

}  // namespace loopfleet::worker
