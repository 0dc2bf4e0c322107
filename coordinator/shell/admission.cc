#include "coordinator/shell/admission.h"

#include <utility>

namespace loopfleet::coordinator {

Admission::Admission(Submission submission, std::vector<JobSpec> jobs, const State& state)
    : submission_(std::move(submission)), jobs_(std::move(jobs)), conditions_(state) {
  submission_.affinity_changes = state.affinities.changes();
  submission_.jobs.reserve(jobs_.size());
  for (const JobSpec& spec : jobs_) bytes_ += MemoryBytesOf(spec);
}

void Admission::Continue(JobResolver& resolver, const Clock& clock, Instant until) {
  while (!is_over()) {
    JobSpec& next = jobs_[submission_.jobs.size()];
    submission_.jobs.push_back(resolver.Resolve(std::move(next), conditions_));
    if (clock.Now() >= until) return;
  }
}

}  // namespace loopfleet::coordinator
