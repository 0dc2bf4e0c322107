#pragma once
// Job and Outcome as Python classes, and many outcomes as columns.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>

#include "common/job/job_spec.h"
#include "common/job/outcome.h"
#include "common/wire/codec/outcome_columns.h"

namespace loopfleet::python {

struct Job {
  JobSpec spec;
};

// An outcome: one row of a page, which lives as long as any of its rows.
struct OutcomeRow {
  std::shared_ptr<const wire::OutcomeColumns> page;
  std::uint32_t row = 0;

  const wire::EvaluationColumns& figures() const { return page->evaluations; }
  bool ok() const { return figures().ok(row); }
  bool is_timed() const { return figures().is_timed(row); }
  Outcome Whole() const { return page->Row(row); }
};

// All rows of a page as a Python list.
nanobind::list RowsOf(wire::OutcomeColumns page);
OutcomeRow RowOf(const Outcome& outcome);

void BindJobs(nanobind::module_& module);

}  // namespace loopfleet::python
