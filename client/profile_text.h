#pragma once
// A profile beside the tree that it is of.

#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/profile.h"

namespace loopfleet::client {

struct ProfileRow {
  ProfileLine line;
  std::string text;  // the node as it is printed, indented by one blank a level, or what the part is
  bool is_known = false;  // false: the profile does not say, and the line's figures are 0
  double total = 0;       // the share of the node with all inside it; of another part its own share
};

// A row for each node of the job's tree and for each part that took time, in the order of the tree.
// Empty: the job's actions do not lead to a tree.
std::vector<ProfileRow> ProfileRows(const JobSpec& spec, const Profile& profile);

// The rows as a table with bars, then what the profile cost. Lines end in '\n'.
std::string ProfileText(const JobSpec& spec, const Profile& profile);

}  // namespace loopfleet::client
