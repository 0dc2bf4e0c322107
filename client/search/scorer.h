#pragma once
// Scorer: predicts which schedules are quick, so that the others need not be measured.

#include <memory>
#include <span>
#include <vector>

#include "client/search/candidate.h"

namespace loopfleet::client {

class Scorer {
 public:
  virtual ~Scorer() = default;
  // One number for each candidate: the lower, the quicker. Only their order matters.
  virtual std::vector<double> Score(std::span<const Candidate> candidates) = 0;
  virtual void Learn(std::span<const Evaluated> results) = 0;
};

// A linear model of log(time) over the sizes, order and annotations of the loops around the
// innermost operation. Learns from the first result on.
std::unique_ptr<Scorer> MakeLinearScorer();

}  // namespace loopfleet::client
