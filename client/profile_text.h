#pragma once
// A profile as text.

#include <string>

#include "common/job/job_spec.h"
#include "common/job/profile.h"

namespace loopfleet::client {

// The tree of the job with shares and bars, a line for each of ProfileRows, then what the profile
// cost. Lines end in '\n'.
std::string ProfileText(const JobSpec& spec, const Profile& profile);

}  // namespace loopfleet::client
