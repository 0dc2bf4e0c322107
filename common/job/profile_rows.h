#pragma once
// ProfileRows: a profile beside the tree that it is of, for every reader: the command, Python, the
// page.

#include <string>
#include <vector>

#include "common/job/job_spec.h"
#include "common/job/profile.h"

namespace loopfleet {

struct ProfileRow {
  ProfileLine line;
  std::string
      text;  // the node as it is printed, indented by one blank a level, or what the part is
  bool is_known = false;  // false: the profile does not say, and the line's figures are 0
  double total = 0;       // the share of the node with all inside it; of another part its own share
};

// A row for each node of the job's tree and for each part that took time, in the order of the tree.
// Empty: the job's actions do not lead to a tree.
std::vector<ProfileRow> ProfileRows(const JobSpec& spec, const Profile& profile);

}  // namespace loopfleet
