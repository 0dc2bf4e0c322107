#include "coordinator/core/tables/job_table.h"

#include <utility>

#include "common/base/check.h"

namespace loopfleet::coordinator {

Question QuestionOf(const JobSpec& spec, const ResolvedTask& admission) {
  return {.subject = admission.subject,
          .placement = admission.placement,
          .threads = spec.threads,
          .cache = spec.cache,
          .precision = spec.precision,
          .min_grade = spec.min_grade,
          .budget_ms = spec.budget_ms,
          .cut_above_ns = spec.cut_above_ns,
          .labels = DemandOf(spec, admission.placement).labels,
          .affinity = spec.affinity};
}

Question QuestionOf(const Job& job) { return QuestionOf(job.spec, ToMeasureOf(job)); }

ResolvedTask ToMeasureOf(const Job& job) {
  return {.subject = job.subject,
          .program = job.program,
          .placement = job.placement,
          .flop_count = job.flop_count};
}

Job& JobTable::Add(Job&& job) {
  const JobId id = job.id;
  const auto [entry, added] = jobs_.try_emplace(id, std::move(job));
  LF_CHECK(added, "job {} is here already", id);
  return entry->second;
}

Job* JobTable::Find(JobId id) {
  const auto entry = jobs_.find(id);
  return entry == jobs_.end() ? nullptr : &entry->second;
}

const Job* JobTable::Find(JobId id) const {
  const auto entry = jobs_.find(id);
  return entry == jobs_.end() ? nullptr : &entry->second;
}

Job& JobTable::At(JobId id) {
  Job* job = Find(id);
  LF_CHECK(job != nullptr, "job {} is not here", id);
  return *job;
}

Job JobTable::Take(JobId id) {
  auto node = jobs_.extract(id);
  LF_CHECK(!node.empty(), "job {} is not here", id);
  return std::move(node.mapped());
}

}  // namespace loopfleet::coordinator
