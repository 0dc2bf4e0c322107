#include "common/base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace loopfleet {
namespace {

UniqueFd OpenNull() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST(UniqueFd, ClosesWhatItOwnsOnce) {
  int number = -1;
  {
    const UniqueFd fd = OpenNull();
    ASSERT_TRUE(fd);
    number = fd.get();
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(UniqueFd, MovingHandsTheDescriptorOn) {
  UniqueFd first = OpenNull();
  const int number = first.get();
  UniqueFd second = std::move(first);
  EXPECT_EQ(second.get(), number);
  UniqueFd third = OpenNull();
  const int replaced = third.get();
  third = std::move(second);
  EXPECT_EQ(third.get(), number);
  EXPECT_FALSE(IsOpen(replaced));
  EXPECT_TRUE(IsOpen(number));
}

TEST(UniqueFd, ReleaseGivesUpOwnership) {
  UniqueFd fd = OpenNull();
  const UniqueFd other(fd.Release());
  EXPECT_FALSE(fd);
  EXPECT_TRUE(IsOpen(other.get()));
}

}  // namespace
}  // namespace loopfleet
