#include "common/base/control_group.h"

#include <gtest/gtest.h>

#include <utility>

namespace loopfleet {
namespace {

using Found = std::vector<std::pair<int, std::string>>;

Found Find(std::string_view memberships, std::string_view controller) {
  Found found;
  for (const ControlGroup& group : ControlGroupsOf(memberships, controller)) {
    found.emplace_back(group.version, group.directory);
  }
  return found;
}

TEST(ControlGroupTest, OfVersionTwoIsFollowedByThoseAroundIt) {
  EXPECT_EQ(Find("0::/fleet.slice/worker.service\n", "cpu"),
            (Found{{2, "fs/cgroup/fleet.slice/worker.service"},
                   {2, "fs/cgroup/fleet.slice"},
                   {2, "fs/cgroup/"}}));
  EXPECT_EQ(Find("0::/", "cpu"), (Found{{2, "fs/cgroup/"}}));
}

TEST(ControlGroupTest, OfVersionOneIsTheControllersOwn) {
  const std::string_view memberships =
      "9:name=systemd:/init\n4:memory:/box\n3:cpuset:/other\n2:cpu,cpuacct:/box\n";
  EXPECT_EQ(Find(memberships, "cpu"), (Found{{1, "fs/cgroup/cpu/box"}, {1, "fs/cgroup/cpu/"}}));
  EXPECT_EQ(Find(memberships, "memory"),
            (Found{{1, "fs/cgroup/memory/box"}, {1, "fs/cgroup/memory/"}}));
}

TEST(ControlGroupTest, WhatIsNoLineOfItIsLeftOut) {
  EXPECT_EQ(Find("", "cpu"), Found{});
  EXPECT_EQ(Find("junk\n0:\n\n", "cpu"), Found{});
}

}  // namespace
}  // namespace loopfleet
