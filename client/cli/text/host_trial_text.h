#pragma once
// A host's trial (client/host_trial.h) as a finding of `loopfleet doctor`, and as JSON.

#include <string_view>

#include "client/host_trial.h"
#include "client/outcome_json.h"
#include "monitoring/host/host_inspection.h"

namespace loopfleet::client {

inline constexpr std::string_view kTrialCheck = "repeatability";

// Says which difference between kernels the figures of this host can show, and in `why` what they
// are made of.
monitoring::Finding FindingOf(const TrialReport& report);
// Shares and differences are relative: 0.01 is 1 %. null: there were no pairs.
Json TrialJson(const TrialReport& report);

}  // namespace loopfleet::client
