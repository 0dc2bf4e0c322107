#pragma once
// HostCoreProbe: the CoreProbe of the core that the calling thread runs on.

#include "worker/timing/core_kernels.h"
#include "worker/timing/core_probe.h"
#include "worker/timing/stopwatch.h"

namespace loopfleet::worker {

class HostCoreProbe final : public CoreProbe {
 public:
  // Finds how many steps take kThroughputNs on a quiet core; about 1 ms.
  HostCoreProbe(const CoreKernels& kernels, const Stopwatch& stopwatch);
  // The same number of steps as another process found, so that both speak of the same probe.
  HostCoreProbe(const CoreKernels& kernels, const Stopwatch& stopwatch, std::uint64_t steps);

  std::uint64_t ThroughputNs() override;
  // What one of no steps takes, at the least: reading the clock, and beginning.
  std::uint64_t EmptyNs() const;
  bool BecomesQuiet(double quiet_ns, std::uint64_t patience_ns) override;
  double ClockMhz() override;
  std::uint64_t Preemptions() override;  // 0.3 us; 0 where the system does not tell
  std::uint64_t ProcessorNs() override;  // 0.3 us

  std::uint64_t steps() const { return steps_; }

  // 21 of them round 20 repetitions cost 32 us. The 10 ns steps of the clocks of some hosts are
  // 0.7 % of it, of the 5 % that contention begins at.
  static constexpr std::uint64_t kThroughputNs = 1'500;

 private:
  const CoreKernels& kernels_;
  const Stopwatch& stopwatch_;
  std::uint64_t steps_ = 1;
  double clock_mhz_ = 0;  // as it was read last; 0: not yet
  std::uint64_t clock_read_ns_ = 0;
};

}  // namespace loopfleet::worker
