#include "coordinator/core/rules/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "common/job/task.h"

namespace loopfleet::coordinator {
namespace {

bool Carries(const Supply& supply, const std::string& label) {
  return supply.labels != nullptr && supply.labels->contains(label);
}

constexpr std::string_view kHostLabel = "host=";

// What does not depend on labels or affinity.
bool CanRun(const Supply& supply, const Demand& demand) {
  return Serves(supply.device, demand.placement) && demand.threads <= supply.max_threads &&
         demand.protocol_minor <= supply.protocol_minor;
}

}  // namespace

std::uint32_t WorthSending(const Refill& refill, const Appetite& appetite) {
  const auto took = appetite.job_took.count();
  if (took <= 0 || appetite.job_took > refill.short_job) return 1;
  const auto work = static_cast<std::uint64_t>((refill.work.count() + took - 1) / took);
  const std::uint64_t jobs = std::max<std::uint64_t>(refill.jobs, work);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(jobs, 1, std::max(1U, appetite.credit / 2)));
}

Demand DemandOf(const JobSpec& spec, Placement placement) {
  Demand demand{.placement = placement,
                .threads = spec.threads,
                .protocol_minor = wire::MinorVersionFor(spec),
                .labels = spec.labels};
  if (const auto label = TaskOf(spec).label; !label.empty()) {
    demand.labels.emplace_back(label);
  }
  std::ranges::sort(demand.labels);
  const auto twice = std::ranges::unique(demand.labels);
  demand.labels.erase(twice.begin(), twice.end());
  return demand;
}

Labels LabelsOf(const wire::WorkerHello& worker) {
  const HardwareFacts& hardware = worker.hardware;
  Labels labels(worker.labels.begin(), worker.labels.end());
  for (const TaskInfo& task : TaskTable()) {
    const bool runs_it =
        std::ranges::find(worker.capabilities, task.label) != worker.capabilities.end();
    if (runs_it) labels.emplace(task.label);
  }
  labels.insert(fmt::format("device={}", EnumName(hardware.device)));
  if (!hardware.isa.empty()) labels.insert("isa=" + hardware.isa);
  if (!hardware.host.empty()) labels.insert(fmt::format("{}{}", kHostLabel, hardware.host));
  return labels;
}

Shape ShapeOf(const Supply& supply) {
  Shape shape{.device = supply.device,
              .max_threads = supply.max_threads,
              .protocol_minor = supply.protocol_minor,
              .labels = {}};
  if (supply.labels == nullptr) return shape;
  shape.labels = *supply.labels;
  std::erase_if(shape.labels, IsHostLabel);
  return shape;
}

Misfit MisfitOf(const Supply& supply, const Demand& demand) {
  Misfit misfit{.other_device = !Serves(supply.device, demand.placement),
                .too_few_threads = demand.threads > supply.max_threads,
                .older_protocol = demand.protocol_minor > supply.protocol_minor,
                .other_affinity = !demand.only.is_nil() && demand.only != supply.worker};
  for (const std::string& label : demand.labels) {
    if (!Carries(supply, label)) misfit.missing_labels.push_back(label);
  }
  return misfit;
}

bool Serves(const Supply& supply, const Demand& demand) {
  return ShapeServes(supply, demand) && ServesBeyondShape(supply, demand);
}

bool ShapeServes(const Supply& supply, const Demand& demand) {
  return CanRun(supply, demand) &&
         std::ranges::all_of(demand.labels, [&](const std::string& label) {
           return IsHostLabel(label) || Carries(supply, label);
         });
}

bool ShapeServes(const Shape& shape, const Demand& demand) {
  return ShapeServes(Supply{.device = shape.device,
                            .max_threads = shape.max_threads,
                            .protocol_minor = shape.protocol_minor,
                            .labels = &shape.labels},
                     demand);
}

bool ServesBeyondShape(const Supply& supply, const Demand& demand) {
  return (demand.only.is_nil() || demand.only == supply.worker) &&
         std::ranges::all_of(demand.labels, [&](const std::string& label) {
           return !IsHostLabel(label) || Carries(supply, label);
         });
}

bool IsHostLabel(std::string_view label) { return label.starts_with(kHostLabel); }

const std::string* HostNamedBy(const Demand& demand) {
  const auto label = std::ranges::find_if(demand.labels, IsHostLabel);
  return label == demand.labels.end() ? nullptr : &*label;
}

}  // namespace loopfleet::coordinator
