#include "common/base/memory_limit.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace loopfleet {
namespace {

class MemoryLimitTest : public ::testing::Test {
 protected:
  MemoryLimitTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lf_memory_XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    Write("proc/meminfo", "MemTotal:       8388608 kB\n");  // 8 GiB
  }
  ~MemoryLimitTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  MemoryLimit Read() const { return ReadMemoryLimit(root_ / "proc", root_ / "sys"); }

  std::filesystem::path root_;
};

TEST_F(MemoryLimitTest, WithoutControlGroupsItIsTheMachines) {
  EXPECT_EQ(Read().host_bytes, 8ULL << 30);
  EXPECT_EQ(Read().group_bytes, 0U);
  EXPECT_EQ(Read().bytes(), 8ULL << 30);
}

TEST_F(MemoryLimitTest, AServiceThatSeesOnlyProcessesKnowsTheMachinesToo) {
  std::filesystem::remove(root_ / "proc/meminfo");
  EXPECT_GT(Read().host_bytes, 64ULL << 20);
}

TEST_F(MemoryLimitTest, TheLowestOfTheGroupAndItsParentsCounts) {
  Write("proc/self/cgroup", "1:name=systemd:/elsewhere\n0::/fleet.slice/worker.service\n");
  Write("sys/fs/cgroup/fleet.slice/worker.service/memory.max", "max\n");
  EXPECT_EQ(Read().bytes(), 8ULL << 30);
  Write("sys/fs/cgroup/fleet.slice/memory.max", "4294967296\n");
  EXPECT_EQ(Read().bytes(), 4ULL << 30);
  Write("sys/fs/cgroup/fleet.slice/worker.service/memory.max", "1073741824\n");
  EXPECT_EQ(Read().group_bytes, 1ULL << 30);
  Write("sys/fs/cgroup/fleet.slice/worker.service/memory.max", "99999999999999\n");
  EXPECT_EQ(Read().bytes(), 4ULL << 30);
}

TEST_F(MemoryLimitTest, InAContainerTheGroupIsTheRoot) {
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/memory.max", "2147483648\n");
  EXPECT_EQ(Read().bytes(), 2ULL << 30);
}

TEST_F(MemoryLimitTest, VersionOneHasAControllerForMemory) {
  Write("proc/self/cgroup", "9:cpu:/other\n4:memory:/box/job\n0::/\n");
  Write("sys/fs/cgroup/memory/box/job/memory.limit_in_bytes", "9223372036854771712\n");  // none
  EXPECT_EQ(Read().group_bytes, 0U);
  Write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "536870912\n");
  EXPECT_EQ(Read().bytes(), 512ULL << 20);
}

TEST_F(MemoryLimitTest, ThisMachineHasMemory) { EXPECT_GT(ReadMemoryLimit().bytes(), 0U); }

}  // namespace
}  // namespace loopfleet
