#include "coordinator/report_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace loopfleet::coordinator {
namespace {

// What a worker does with one job ends within minutes, and what waits there for longer is taken
// back. Far below what would overflow a sum of stages.
constexpr std::chrono::hours kMaxStage{24};

std::optional<std::string> WhyNoDurations(const StageDurations& stages) {
  for (const Stage stage : kStages) {
    if (stages[stage] < Nanos{0} || stages[stage] > kMaxStage) {
      return fmt::format("its stage '{}' took {} ns; at most 24 hours can be", StageName(stage),
                         stages[stage].count());
    }
  }
  return std::nullopt;
}

bool IsTime(double ns) { return std::isfinite(ns) && ns > 0; }

std::optional<std::string> WhyNoMeasurement(const Measurement& m) {
  for (const double ns :
       {m.elapsed_ns, m.elapsed_low_ns, m.elapsed_high_ns, m.elapsed_min_ns, m.elapsed_mean_ns}) {
    if (!IsTime(ns)) return fmt::format("{} ns is no time", ns);
  }
  if (!std::isfinite(m.spread) || m.spread < 0) return fmt::format("{} is no spread", m.spread);
  if (m.elapsed_low_ns > m.elapsed_ns || m.elapsed_ns > m.elapsed_high_ns) {
    return fmt::format("the median {} ns is outside its interval [{}, {}]", m.elapsed_ns,
                       m.elapsed_low_ns, m.elapsed_high_ns);
  }
  if (m.thinned) return "its samples were thinned, which only the database does";
  if (m.samples_ns.empty() || !std::ranges::all_of(m.samples_ns, IsTime)) {
    return "a sample is no time, or there are none";
  }
  if (m.sample_flags.size() != m.samples_ns.size()) {
    return fmt::format("{} flags for {} samples", m.sample_flags.size(), m.samples_ns.size());
  }
  return std::nullopt;
}

std::optional<std::string> WhyNotOf(const Conditions& conditions, const Worker& worker) {
  if (conditions.hardware.hardware_class != worker.facts.hardware.hardware_class) {
    return fmt::format("its hardware class '{}' is not the '{}' that the worker said hello with",
                       conditions.hardware.hardware_class, worker.facts.hardware.hardware_class);
  }
  if (conditions.hardware.device != worker.device()) {
    return fmt::format("it is of a {} device, the worker is a {} worker",
                       DeviceKindName(conditions.hardware.device), DeviceKindName(worker.device()));
  }
  if (conditions.compiler != worker.facts.compiler) {
    return "its compiler is not the one that the worker said hello with";
  }
  if (conditions.policy != worker.facts.policy) {
    return fmt::format("its policy '{}' is not the '{}' that the worker said hello with",
                       conditions.policy, worker.facts.policy);
  }
  return std::nullopt;
}

// They are a part of what it answers for. A worker that got no further than the job's first checks
// says no tree, and its conditions are nobody's.
std::optional<std::string> WhyNotAsked(const Conditions& conditions, const JobSpec& spec) {
  if (conditions.threads != spec.threads) {
    return fmt::format("it is of {} threads, the job asked for {}", conditions.threads,
                       spec.threads);
  }
  if (conditions.cache != spec.cache) return "it is of another cache state than the job asked for";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> WhyImplausible(const Evaluation& evaluation, const Job& job,
                                          const Worker& worker) {
  const looptree::TreeKey& tree = job.tree;
  if (auto why = WhyNoDurations(evaluation.stages)) return why;
  if (evaluation.tree_key && *evaluation.tree_key != tree) {
    return fmt::format("it is about tree {}, the job's is {}", evaluation.tree_key->ToString(),
                       tree.ToString());
  }
  if (evaluation.conditions) {
    if (auto why = WhyNotOf(*evaluation.conditions, worker)) return why;
    if (evaluation.tree_key) {
      if (auto why = WhyNotAsked(*evaluation.conditions, job.spec)) return why;
    }
  }
  if (!evaluation.ok()) return std::nullopt;
  if (!evaluation.tree_key) return "a measurement without its tree";
  if (!evaluation.conditions) return "a measurement without its conditions";
  return WhyNoMeasurement(evaluation.measurement());
}

}  // namespace loopfleet::coordinator
