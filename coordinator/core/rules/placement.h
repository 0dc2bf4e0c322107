#pragma once
// Placement: which worker may run which job. Pure functions over plain values.

#include <chrono>
#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "common/base/uuid.h"
#include "common/job/hardware_facts.h"
#include "common/job/job_spec.h"
#include "common/wire/message.h"

namespace loopfleet::coordinator {

// Whether a worker of this device may run a job placed so.
constexpr bool Serves(DeviceKind device, Placement placement) {
  switch (placement) {
    case Placement::kAny: return true;
    case Placement::kCpu: return device == DeviceKind::kCpu;
    case Placement::kCuda: return device == DeviceKind::kCuda;
  }
  return false;
}

// What a job needs of its worker. Those that any worker may serve are ordered before those that are
// bound to one, and these by worker.
struct Demand {
  Uuid only;  // the worker that its affinity is bound to; nil: any that has the rest
  Placement placement = Placement::kCpu;
  std::uint32_t threads = 1;
  std::vector<std::string> labels;  // ascending, none twice
  friend auto operator<=>(const Demand&, const Demand&) = default;
};
Demand DemandOf(const JobSpec& spec, Placement placement);

using Labels = std::set<std::string, std::less<>>;
// What a worker was given on its command line, and those that each has by itself: "device=cpu",
// "isa=avx512", "host=NAME".
Labels LabelsOf(const std::vector<std::string>& given, const HardwareFacts& hardware);

// What a worker has. `labels` outlives it.
struct Supply {
  Uuid worker;
  DeviceKind device = DeviceKind::kCpu;
  std::uint32_t max_threads = 1;
  const Labels* labels = nullptr;  // none: it carries none
};

// When a worker is given more. One message for each job that ends costs the coordinator as much as
// twenty jobs of a larger message; so a worker of short jobs is given several at once, and not
// before it has room for them. It never idles for that: half of its credit is enough.
struct Refill {
  std::uint32_t jobs = 1;  // short ones, at least
  std::chrono::nanoseconds work{0};
  std::chrono::nanoseconds short_job{0};
};
struct Appetite {
  std::chrono::nanoseconds job_took{0};  // of late; 0: not known
  std::uint32_t credit = 1;
};
// How much free credit makes it worth sending leases; 1 to credit.
std::uint32_t WorthSending(const Refill& refill, const Appetite& appetite);

// What keeps a worker from running a job, whatever its state; nothing: it fits.
struct Misfit {
  bool other_device = false;
  bool too_few_threads = false;
  bool other_affinity = false;  // the job's affinity is bound to another worker
  std::vector<std::string> missing_labels;

  std::size_t count() const {
    return std::size_t{other_device} + std::size_t{too_few_threads} + std::size_t{other_affinity} +
           missing_labels.size();
  }
};
Misfit MisfitOf(const Supply& supply, const Demand& demand);
bool Serves(const Supply& supply, const Demand& demand);  // no misfit

// A worker in quarantine is the last candidate: it is given a job only while no ready worker
// (neither lost, drained nor in quarantine; free or busy) could run that job. What it measures is
// stored flagged. So a job waits for a better worker that is there, but not for one that may come.
constexpr bool IsAssignable(wire::WorkerState state, bool a_ready_worker_could_run_it) {
  return state == wire::WorkerState::kReady ||
         (state == wire::WorkerState::kQuarantined && !a_ready_worker_could_run_it);
}

}  // namespace loopfleet::coordinator
