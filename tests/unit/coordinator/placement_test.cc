#include "coordinator/placement.h"

#include <gtest/gtest.h>

namespace loopfleet::coordinator {
namespace {

using Shares = std::vector<std::uint32_t>;

TEST(Placement, ServesItsOwnDeviceAndAny) {
  EXPECT_TRUE(Serves(DeviceKind::kCpu, Placement::kCpu));
  EXPECT_TRUE(Serves(DeviceKind::kCuda, Placement::kCuda));
  EXPECT_TRUE(Serves(DeviceKind::kCuda, Placement::kAny));
  EXPECT_FALSE(Serves(DeviceKind::kCpu, Placement::kCuda));
  EXPECT_FALSE(Serves(DeviceKind::kCuda, Placement::kCpu));
}

TEST(Placement, EverybodyGetsAFirstBeforeAnybodyGetsASecond) {
  EXPECT_EQ(ShareOut(2, Shares{5, 5, 5}), (Shares{1, 1, 0}));
  EXPECT_EQ(ShareOut(4, Shares{5, 5, 5}), (Shares{2, 1, 1}));
  EXPECT_EQ(ShareOut(7, Shares{1, 5, 2}), (Shares{1, 4, 2}));
}

TEST(Placement, NeverMoreThanCreditOrThanThereIs) {
  EXPECT_EQ(ShareOut(100, Shares{1, 2, 3}), (Shares{1, 2, 3}));
  EXPECT_EQ(ShareOut(0, Shares{1, 2, 3}), (Shares{0, 0, 0}));
  EXPECT_EQ(ShareOut(5, Shares{}), Shares{});
}

}  // namespace
}  // namespace loopfleet::coordinator
