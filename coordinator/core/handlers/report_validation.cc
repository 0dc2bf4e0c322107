#include "coordinator/core/handlers/report_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "common/job/plausibility.h"
#include "common/job/task.h"

namespace loopfleet::coordinator {
namespace {

// A worker spends minutes at most on one job, and jobs that wait there for longer are taken back.
// The limit is far below what would overflow a sum of stages.
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

// PostgreSQL has signed columns for them, and refuses what does not fit.
std::optional<std::string> WhyNoCounts(const Evaluation& evaluation) {
  constexpr std::uint64_t kMostCount = std::numeric_limits<std::int64_t>::max();
  constexpr std::uint64_t kMostIndex = std::numeric_limits<std::int32_t>::max();
  const bool is_timed = evaluation.is_timed();
  const bool failed = !evaluation.ok();
  struct Count {
    std::string_view name;
    std::uint64_t is;
    std::uint64_t most;
  };
  for (const Count& count :
       {Count{"flop", evaluation.flop_count, kMostCount},
        Count{"bytes of scratch", evaluation.scratch_bytes, kMostCount},
        Count{"iterations", is_timed ? evaluation.measurement().iterations_per_sample : 0,
              kMostCount},
        Count{"threads", evaluation.conditions ? evaluation.conditions->threads : 0, kMostIndex},
        Count{"actions", failed ? evaluation.failure().action_index.value_or(0) : 0, kMostIndex}}) {
    if (count.is <= count.most) continue;
    return fmt::format("it states {} {}; at most {} can be", count.is, count.name, count.most);
  }
  return std::nullopt;
}

// Derived figures may have been summed in another order.
bool AreEqual(double a, double b) {
  constexpr double kRounding = 1e-6;
  return std::abs(a - b) <= kRounding * std::max(std::abs(a), std::abs(b));
}

// An interval wider than stated would agree with any other worker's measurement, and a median that
// does not follow from its samples could be anything.
std::optional<std::string> WhyNotOfItsSamples(const Measurement& m) {
  const double spread = (m.elapsed_high_ns - m.elapsed_low_ns) / (2 * m.elapsed_ns);
  if (!AreEqual(1 + m.spread, 1 + spread)) {
    return fmt::format("its spread is {}, its interval's is {}", m.spread, spread);
  }
  if (m.grade < GradeOf(m.spread)) {
    return fmt::format("its grade is {}, and a spread of {} is worth {}", EnumName(m.grade),
                       m.spread, EnumName(GradeOf(m.spread)));
  }
  const bool all_preempted = std::ranges::all_of(
      m.sample_flags, [](std::uint8_t flags) { return (flags & kSamplePreempted) != 0; });
  if (all_preempted && m.grade != Grade::kD) return "each of its samples was preempted";
  const std::vector<double> counted = UsedSamples(m);
  const std::size_t middle = counted.size() / 2;
  const double median =
      counted.size() % 2 == 1 ? counted[middle] : (counted[middle - 1] + counted[middle]) / 2;
  const double mean =
      std::accumulate(counted.begin(), counted.end(), 0.0) / static_cast<double>(counted.size());
  struct Figure {
    std::string_view name;
    double stated;
    double is;
  };
  for (const Figure& figure : {Figure{"median", m.elapsed_ns, median},
                               Figure{"minimum", m.elapsed_min_ns, counted.front()},
                               Figure{"mean", m.elapsed_mean_ns, mean}}) {
    if (!AreEqual(figure.stated, figure.is)) {
      return fmt::format("it states {} ns as the {} of its samples, which is {} ns", figure.stated,
                         figure.name, figure.is);
    }
  }
  return std::nullopt;
}

// By the workers' own rule (common/job/plausibility.h), with the peaks of the worker's hello, or
// higher ones that its core has shown since, as stated with the figure.
std::optional<std::string> WhyTooQuick(const Evaluation& evaluation, const Worker& worker) {
  // If its sibling was busy when the peaks were measured, the core had half of its real peak.
  constexpr double kMostRise = 2;
  const HardwareFacts& said = worker.facts.hardware;
  std::optional<HardwareFacts> risen;  // rarely needed, and costly: facts hold a dozen strings
  const double peak = said.peaks.flop_per_second;
  const double stated = evaluation.conditions->hardware.peaks.flop_per_second;
  if (stated > peak) {
    risen = said;
    risen->peaks.flop_per_second = std::min(stated, kMostRise * peak);
  }
  const WorkDone work{.flop_count = evaluation.flop_count,
                      .threads = evaluation.conditions->threads};
  auto failure = CheckPlausible(evaluation.measurement(), work, risen ? *risen : said);
  if (!failure) return std::nullopt;
  return std::move(failure->message);
}

std::optional<std::string> WhyNotOf(const Conditions& conditions, const Worker& worker) {
  if (conditions.hardware.hardware_class != worker.facts.hardware.hardware_class) {
    return fmt::format("its hardware class '{}' is not the '{}' that the worker said hello with",
                       conditions.hardware.hardware_class, worker.facts.hardware.hardware_class);
  }
  if (conditions.hardware.device != worker.device()) {
    return fmt::format("it is of a {} device, the worker is a {} worker",
                       EnumName(conditions.hardware.device), EnumName(worker.device()));
  }
  if (conditions.compiler != worker.facts.compiler) {
    return "its compiler is not the one that the worker said hello with";
  }
  if (conditions.hardware.host != worker.facts.hardware.host) {
    return fmt::format("its host '{}' is not the '{}' that the worker said hello with",
                       conditions.hardware.host, worker.facts.hardware.host);
  }
  if (!worker.facts.isolation.empty() && conditions.isolation != worker.facts.isolation) {
    return fmt::format("its isolation '{}' is not the '{}' that the worker said hello with",
                       conditions.isolation, worker.facts.isolation);
  }
  if (!IsPlausibleClock(conditions.hardware.clock_mhz)) {
    return fmt::format("{} MHz is no reference clock", conditions.hardware.clock_mhz);
  }
  if (conditions.policy != worker.facts.policy) {
    return fmt::format("its policy '{}' is not the '{}' that the worker said hello with",
                       conditions.policy, worker.facts.policy);
  }
  return std::nullopt;
}

// Checked only together with a tree key: a worker that got no further than the job's first checks
// states no tree, and its conditions mean nothing.
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
  if (auto why = WhyNoDurations(evaluation.stages)) return why;
  if (auto why = WhyNoCounts(evaluation)) return why;
  if (evaluation.subject && *evaluation.subject != job.subject) {
    return fmt::format("it is about {}, the job about {}", evaluation.subject->ToString(),
                       job.subject.ToString());
  }
  if (evaluation.subject && job.flop_count != 0 && evaluation.flop_count != job.flop_count) {
    return fmt::format("it is about {} flop, the job's program is {}", evaluation.flop_count,
                       job.flop_count);
  }
  if (evaluation.conditions) {
    if (auto why = WhyNotOf(*evaluation.conditions, worker)) return why;
    if (evaluation.subject) {
      if (auto why = WhyNotAsked(*evaluation.conditions, job.spec)) return why;
    }
  }
  if (!evaluation.ok()) return std::nullopt;
  if (!evaluation.subject) return "a verdict without its subject";
  if (!evaluation.conditions) return "a verdict without its conditions";
  const TaskInfo& task = TaskOf(job.spec);
  if (evaluation.is_timed() != task.is_timed) {
    return fmt::format("a verdict of another kind than a job of kind {} has", EnumName(task.kind));
  }
  if (!task.is_timed) {
    return task.why_no_answer == nullptr ? std::nullopt
                                         : task.why_no_answer(job.spec, evaluation.observed());
  }
  if (auto why = WhyNoMeasurement(evaluation.measurement())) return why;
  if (auto why = WhyNotOfItsSamples(evaluation.measurement())) return why;
  return WhyTooQuick(evaluation, worker);
}

std::string DoubtOf(const Worker& worker, const LeaseRecord& lease) {
  const Quarantine quarantine = QuarantineOf(worker);
  if (quarantine) return "the worker was in quarantine: " + QuarantineText(quarantine);
  const bool was_meanwhile =
      lease.is_adopted ? worker.released_after.value != 0 : lease.id <= worker.released_after;
  return was_meanwhile ? "the worker had it while it was in quarantine" : "";
}

}  // namespace loopfleet::coordinator
