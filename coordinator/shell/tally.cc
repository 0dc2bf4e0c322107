#include "coordinator/shell/tally.h"

#include <variant>

namespace loopfleet::coordinator {

void Tally::Count(const Observation& observation) {
  if (const auto* accepted = std::get_if<JobsWereAccepted>(&observation)) {
    accepted_ += accepted->count;
  } else if (const auto* finished = std::get_if<JobsWereFinished>(&observation)) {
    finished_ += finished->jobs.size();
    for (const FinishedJob& job : finished->jobs) {
      if (job.failure && *job.failure != FailureCode::kCancelled) ++failed_;
      if (job.source == OutcomeSource::kStored) ++from_store_;
    }
  }
}

}  // namespace loopfleet::coordinator
