#pragma once
// Evaluator: answers how good candidates are. Batches are answered in the order of sending, each as
// a whole: the same requests get the same answers, however the fleet schedules them.

#include <cstdint>
#include <span>
#include <vector>

#include "client/client.h"
#include "client/search/candidate.h"
#include "common/job/outcome.h"

namespace loopfleet::client {

struct Trial {
  looptree::Source source;
  Candidate candidate;
  double cut_above_ns = 0;  // a slower schedule's figure is not wanted; 0: any is
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual Answer<void> Send(std::span<const Trial> trials) = 0;
  // The outcomes of the oldest batch that was sent and not received, in the order of its trials.
  virtual Answer<std::vector<Outcome>> Receive() = 0;
};

}  // namespace loopfleet::client
