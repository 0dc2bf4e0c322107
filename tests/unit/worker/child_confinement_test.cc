#include "worker/child_confinement.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace loopfleet::worker {
namespace {

// Eight threads that are busy for ten seconds use eighty, and are within their limit.
TEST(ChildConfinementTest, ProcessorTimeIsOfAllThreads) {
  EXPECT_EQ((ProcessorTime{.wall_seconds = 10, .threads = 8}.seconds()), 80U);
  const pid_t child = ::fork();
  if (child == 0) {
    LimitProcessorTime({.wall_seconds = 10, .threads = 8});
    rlimit limit{};
    ::getrlimit(RLIMIT_CPU, &limit);
    ::_exit(limit.rlim_cur >= 80 && limit.rlim_cur < limit.rlim_max ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace loopfleet::worker
