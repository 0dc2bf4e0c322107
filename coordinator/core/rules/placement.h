#pragma once
// Placement: which worker may run which job. Pure functions over plain values.

#include <chrono>
#include <compare>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/uuid.h"
#include "common/job/hardware_facts.h"
#include "common/job/job_spec.h"
#include "common/wire/message.h"

namespace loopfleet::coordinator {

// Whether a worker of this device may run a job with this placement.
constexpr bool Serves(DeviceKind device, Placement placement) {
  switch (placement) {
    case Placement::kAny: return true;
    case Placement::kCpu: return device == DeviceKind::kCpu;
    case Placement::kCuda: return device == DeviceKind::kCuda;
  }
  return false;
}

// What a job needs of its worker. Demands that any worker may meet are ordered before those bound
// to one worker, and these by worker.
struct Demand {
  Uuid only;  // the worker its affinity is bound to; nil: any that fits
  Placement placement = Placement::kCpu;
  std::uint32_t threads = 1;
  std::uint16_t protocol_minor = 0;  // wire::MinorVersionFor
  std::vector<std::string> labels;   // ascending, none twice
  friend auto operator<=>(const Demand&, const Demand&) = default;
};
Demand DemandOf(const JobSpec& spec, Placement placement);

using Labels = std::set<std::string, std::less<>>;
// The labels given on the worker's command line, those that every worker has ("device=cpu",
// "isa=avx512", "host=NAME"), and one for each further kind of job that it runs ("kind=probe").
Labels LabelsOf(const wire::WorkerHello& worker);

// What a worker offers. `labels` must outlive it.
struct Supply {
  Uuid worker;
  std::uint64_t shape = 0;  // equal only if ShapeOf is
  DeviceKind device = DeviceKind::kCpu;
  std::uint32_t max_threads = 1;
  std::uint16_t protocol_minor = wire::kProtocolVersion.minor;
  const Labels* labels = nullptr;  // null: no labels
};

// What workers on many hosts have in common: all of a supply but the worker and its "host=..."
// labels. A thousand workers have few shapes, so demands are matched to these.
struct Shape {
  DeviceKind device = DeviceKind::kCpu;
  std::uint32_t max_threads = 1;
  std::uint16_t protocol_minor = wire::kProtocolVersion.minor;
  Labels labels;
  friend auto operator<=>(const Shape&, const Shape&) = default;
};
Shape ShapeOf(const Supply& supply);

// When to send a worker more leases. A message per finished job costs the coordinator as much as
// twenty jobs in a larger message, so a worker of short jobs gets several at once, when it has room
// for them. It does not idle for that: room for half its credit is always enough.
struct Refill {
  std::uint32_t jobs = 1;  // at least this many short jobs
  std::chrono::nanoseconds work{0};
  std::chrono::nanoseconds short_job{0};
};
struct Appetite {
  std::chrono::nanoseconds job_took{0};  // recently; 0: unknown
  std::uint32_t credit = 1;
};
// The least free credit for which leases are sent; from 1 to the credit.
std::uint32_t WorthSending(const Refill& refill, const Appetite& appetite);

// The reasons why a worker cannot run a job, whatever the worker's state. None: it fits.
struct Misfit {
  bool other_device = false;
  bool too_few_threads = false;
  bool older_protocol = false;  // it does not know a field or an action of the job
  bool other_affinity = false;  // the job's affinity is bound to another worker
  std::vector<std::string> missing_labels;

  std::size_t count() const {
    return std::size_t{other_device} + std::size_t{too_few_threads} + std::size_t{older_protocol} +
           std::size_t{other_affinity} + missing_labels.size();
  }
};
Misfit MisfitOf(const Supply& supply, const Demand& demand);
bool Serves(const Supply& supply, const Demand& demand);  // no misfit
// Like Serves, but ignores the demand's `host=` labels and `only`.
bool ShapeServes(const Supply& supply, const Demand& demand);
bool ShapeServes(const Shape& shape, const Demand& demand);
// What ShapeServes ignores: Serves is both.
bool ServesBeyondShape(const Supply& supply, const Demand& demand);
bool IsHostLabel(std::string_view label);
// The first of the demand's `host=` labels; null: it has none.
const std::string* HostNamedBy(const Demand& demand);

// A quarantined worker is the last candidate: it gets a job only while no ready worker (free or
// busy, neither lost, drained nor quarantined) could run that job. Its measurements are stored
// flagged. So a job waits for a better worker that is connected, but not for one that may join.
constexpr bool IsAssignable(wire::WorkerState state, bool a_ready_worker_could_run_it) {
  return state == wire::WorkerState::kReady ||
         (state == wire::WorkerState::kQuarantined && !a_ready_worker_could_run_it);
}

}  // namespace loopfleet::coordinator
