#pragma once
// Strategy: decides which candidates to try next, from the figures of those before. Pure: no clock,
// file or network, and all its chance comes from its seed, so the same figures in the same order
// give the same proposals.

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "client/search/candidate.h"
#include "client/search/search_space.h"

namespace loopfleet::client {

class Strategy {
 public:
  virtual ~Strategy() = default;

  // At most `most` candidates, which may be known already: the caller answers those from memory.
  // None: it waits for the figures of what it proposed or, if it has them all, has nothing more to
  // propose.
  virtual std::vector<Candidate> Propose(std::size_t most) = 0;
  // Figures of what was proposed, in any order. The first ever told is the start's.
  virtual void Tell(std::span<const Evaluated> results) = 0;
};

}  // namespace loopfleet::client
