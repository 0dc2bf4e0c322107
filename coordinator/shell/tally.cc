#include "coordinator/shell/tally.h"

#include <variant>

namespace loopfleet::coordinator {
namespace {

// A client asked for the others: to cancel a batch, or to cut what is slow.
bool IsFault(FailureCode code) {
  return code != FailureCode::kCancelled && code != FailureCode::kCut;
}

}  // namespace

void Tally::Count(const Observation& observation) {
  if (const auto* accepted = std::get_if<JobsWereAccepted>(&observation)) {
    accepted_ += accepted->count;
  } else if (const auto* finished = std::get_if<JobsWereFinished>(&observation)) {
    finished_ += finished->jobs.size();
    for (const FinishedJob& job : finished->jobs) {
      const bool failed = job.failure && IsFault(*job.failure);
      if (failed) ++failed_;
      if (failed || !job.failure) ++judged_;
      if (job.source == OutcomeSource::kStored) ++from_store_;
    }
  }
}

}  // namespace loopfleet::coordinator
