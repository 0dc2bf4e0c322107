#pragma once
// ControlGroup: a group in which the system keeps a process: a container's, or a service's.

#include <string>
#include <string_view>
#include <vector>

namespace loopfleet {

struct ControlGroup {
  int version = 2;
  std::string directory;  // of its files, below /sys: "fs/cgroup/fleet.slice/worker.service"
};

// The groups of a process, of version 2 and of this controller ("memory", "cpu") of version 1. Each
// is followed by the groups that it is in, whose limits hold for it, too. `memberships`: the text
// of /proc/self/cgroup.
std::vector<ControlGroup> ControlGroupsOf(std::string_view memberships,
                                          std::string_view controller);

}  // namespace loopfleet
