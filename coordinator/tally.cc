#include "coordinator/tally.h"

#include <variant>

namespace loopfleet::coordinator {

void Tally::Count(const Observation& observation) {
  if (const auto* accepted = std::get_if<JobsWereAccepted>(&observation)) {
    accepted_ += accepted->count;
  } else if (const auto* finished = std::get_if<JobWasFinished>(&observation)) {
    ++finished_;
    if (finished->failure) ++failed_;
    if (finished->source == OutcomeSource::kStored) ++from_store_;
  }
}

}  // namespace loopfleet::coordinator
