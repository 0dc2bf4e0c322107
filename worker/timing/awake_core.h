#pragma once
// AwakeCore: keeps the timing core at work between kernels. On a shared host, a virtual processor
// that was idle is put back beside another machine's work, and has its core to itself again only
// after a millisecond or two of arithmetic (docs/research/timing_experiments.md). A thread of the
// lowest class (SCHED_IDLE) does that arithmetic; whatever else wants the core has it at once.

#include <atomic>
#include <thread>

#include "common/base/clock.h"
#include "worker/isa/core_kernels.h"

namespace loopfleet::worker {

class AwakeCore {
 public:
  // `core`: of the timing slot; nothing else of this process runs there. `stay`: for how long after
  // each Renew; 0: never. Where the system refuses the class or the core,
  // the core may sleep; a warning says so.
  AwakeCore(int core, Nanos stay, const CoreKernels& kernels);
  ~AwakeCore();
  AwakeCore(const AwakeCore&) = delete;
  AwakeCore& operator=(const AwakeCore&) = delete;

  // Work for the core has come, or is soon to come. Safe from any thread; takes no lock.
  void Renew();

 private:
  void Run(int core);

  const Nanos stay_;
  const CoreKernels& kernels_;
  std::atomic<Nanos::rep> until_{0};  // of the steady clock; kStop: end
  std::thread thread_;
};

}  // namespace loopfleet::worker
