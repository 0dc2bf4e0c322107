#include "coordinator/core/dispatch/no_matching_worker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/counted.h"
#include "common/base/suggestion.h"

namespace loopfleet::coordinator {
namespace {

using wire::WorkerState;

std::string_view PlacementText(Placement placement) {
  switch (placement) {
    case Placement::kCpu: return "device cpu";
    case Placement::kCuda: return "device cuda";
    case Placement::kAny: return "any device";
  }
  return "";
}

std::string NeededProtocol(const Demand& demand) {
  return fmt::format("{}.{}", wire::kProtocolVersion.major, demand.protocol_minor);
}

std::string DemandText(const Demand& demand) {
  std::string text(PlacementText(demand.placement));
  if (demand.threads > 1) text += fmt::format(", {} threads for a kernel", demand.threads);
  if (demand.protocol_minor > 0) text += fmt::format(", protocol {}", NeededProtocol(demand));
  if (!demand.labels.empty()) {
    text += fmt::format(", {} '{}'", demand.labels.size() == 1 ? "label" : "labels",
                        fmt::join(demand.labels, "', '"));
  }
  return text;
}

std::string_view StateText(WorkerState state) {
  switch (state) {
    case WorkerState::kReady: return "ready";
    case WorkerState::kDraining: return "draining";
    case WorkerState::kLost: return "lost";
    case WorkerState::kQuarantined: return "in quarantine";
  }
  return "";
}

std::string MisfitText(const Worker& worker, const Demand& demand, const Misfit& misfit) {
  std::vector<std::string> parts;
  if (misfit.other_device) {
    parts.push_back(fmt::format("is a {} worker", EnumName(worker.device())));
  }
  if (misfit.too_few_threads) {
    parts.push_back(fmt::format("gives a kernel {} of {}", worker.facts.max_threads,
                                Counted(demand.threads, "thread", "threads")));
  }
  if (misfit.older_protocol) {
    parts.push_back(fmt::format("speaks protocol {}.{}", worker.facts.version.major,
                                worker.facts.version.minor));
  }
  if (misfit.other_affinity) parts.emplace_back("is not the one of the job's affinity");
  const std::vector<std::string_view> labels(worker.labels.begin(), worker.labels.end());
  for (const std::string& label : misfit.missing_labels) {
    parts.push_back(fmt::format("lacks the label '{}'{}", label, NearestSuffix(label, labels)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

constexpr std::size_t kMostCompared = 200;

}  // namespace

std::string WhyUnschedulable(const WorkerRegistry& workers, const Demand& demand, Nanos grace) {
  std::string text = fmt::format("no worker for it ({}) ", DemandText(demand));
  text += grace == Nanos{0}
              ? std::string("is there")
              : fmt::format("was there for {}",
                            fmt::format("{:.3g} s", std::chrono::duration<double>(grace).count()));
  const Worker* nearest = nullptr;  // of the first few: the text is a hint for people
  Misfit least;
  for (const auto& [id, worker] : workers.all() | std::views::take(kMostCompared)) {
    Misfit misfit = MisfitOf(worker.supply(), demand);
    if (nearest != nullptr && misfit.count() >= least.count()) continue;
    nearest = &worker;
    least = std::move(misfit);
  }
  if (nearest == nullptr) return text + "; no worker is connected at all";
  if (least.count() == 0) {
    return text +
           fmt::format("; {} would do, but is {}", nearest->facts.name, StateText(nearest->state));
  }
  return text + fmt::format("; the nearest, {}, {}", nearest->facts.name,
                            MisfitText(*nearest, demand, least));
}

}  // namespace loopfleet::coordinator
