#pragma once
// BriefOutcome: an outcome as overviews show it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/job/failure.h"
#include "common/job/ids.h"
#include "common/job/outcome.h"

namespace loopfleet::storage {

struct BriefOutcome {
  JobId job;
  std::string benchmark;  // "": the job has a program of its own
  std::string actions;    // "down,swap_up"; of long ones the beginning
  std::string worker;
  std::string hardware_class;
  WallTime finished_at{};
  Nanos took{0};             // stages queue to measure
  Nanos measure{0};          // the measure stage
  bool is_measured = false;  // a worker evaluated this job; false: another job's outcome answers
  bool is_observed = false;  // not timed, and did not fail
  std::string observed;      // of a probe: JSON, the values by name; "": unusually large
  // Exactly one of is_observed, failure and figures is set.
  struct Failed {
    FailureCode code = FailureCode::kWorkerCrashed;
    std::string message;  // of a long one the beginning
  };
  std::optional<Failed> failure;
  struct Figures {
    double gflop_per_second = 0;
    double elapsed_ns = 0;
    double spread = 0;
    std::string grade;
    bool is_suspect = false;
  };
  std::optional<Figures> figures;
};

struct BriefOutcomes {
  std::vector<BriefOutcome> outcomes;
  bool is_all = false;  // there are no others
};

}  // namespace loopfleet::storage
