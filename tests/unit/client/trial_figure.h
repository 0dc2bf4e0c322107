#pragma once
// A figure of a host's trial, with an interval of 2 % to each side.

#include <cstddef>

#include "client/host_trial.h"

namespace loopfleet::client {

inline TrialFigure Figure(std::size_t kernel, std::size_t start, double elapsed_ns,
                          Grade grade = Grade::kA, bool is_alone = false) {
  return {.kernel = kernel,
          .start = start,
          .is_alone = is_alone,
          .elapsed_ns = elapsed_ns,
          .low_ns = 0.98 * elapsed_ns,
          .high_ns = 1.02 * elapsed_ns,
          .grade = grade};
}

}  // namespace loopfleet::client
