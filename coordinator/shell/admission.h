#pragma once
// Admission: a submission whose jobs are being resolved (job_resolver.h), a slice at a time.
// Looking up the answers of thousands of jobs can take seconds; other requests are served between
// slices.

#include <cstddef>
#include <vector>

#include "common/base/clock.h"
#include "common/job/job_spec.h"
#include "coordinator/core/contract/event.h"
#include "coordinator/core/state/state.h"
#include "coordinator/shell/job_resolver.h"

namespace loopfleet::coordinator {

class Admission {
 public:
  // `submission` gets the jobs as they are resolved. `state` must outlive the admission.
  Admission(Submission submission, std::vector<JobSpec> jobs, const State& state);

  // Resolves at least one job, and more until the time is over.
  void Continue(JobResolver& resolver, const Clock& clock, Instant until);
  // Memory that it takes, approximately.
  std::size_t bytes() const { return bytes_; }
  bool is_over() const { return submission_.jobs.size() == jobs_.size(); }
  const StoredConditions& conditions() const { return conditions_; }
  Submission Take() { return std::move(submission_); }  // once it is over

 private:
  Submission submission_;
  std::vector<JobSpec> jobs_;  // resolved ones are moved from
  StoredConditions conditions_;
  std::size_t bytes_ = 0;
};

}  // namespace loopfleet::coordinator
