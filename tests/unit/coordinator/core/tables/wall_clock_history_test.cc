#include "coordinator/core/tables/wall_clock_history.h"

#include <gtest/gtest.h>

namespace loopfleet::coordinator {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

class WallClockHistoryTest : public testing::Test {
 protected:
  void Pass(Nanos time) {
    now.instant += time;
    now.wall += time;
    history.Note(now);
  }
  void Jump(Nanos by) {
    now.wall += by;
    history.Note(now);
  }
  WallTime Earliest(Nanos ago) const { return history.EarliestSince(now.instant - ago); }

  Moment now{.instant = Instant(seconds(1000)), .wall = WallTime(seconds(1'700'000'000))};
  WallClockHistory history;
};

TEST_F(WallClockHistoryTest, AClockThatIsNotSet) {
  history.Note(now);
  EXPECT_EQ(Earliest(seconds(5)), now.wall - seconds(5)) << "also of before";
  Pass(seconds(60));
  EXPECT_EQ(Earliest(seconds(5)), now.wall - seconds(5));
}

TEST_F(WallClockHistoryTest, AClockThatIsSetForwardShowedLessBefore) {
  history.Note(now);
  Pass(seconds(10));
  Jump(hours(1));
  Pass(seconds(10));
  EXPECT_EQ(Earliest(seconds(5)), now.wall - seconds(5)) << "it was set before that";
  EXPECT_EQ(Earliest(seconds(15)), now.wall - hours(1) - seconds(15));
}

TEST_F(WallClockHistoryTest, AClockThatIsSetBackShowsLessSince) {
  history.Note(now);
  Pass(seconds(10));
  const WallTime before = now.wall;
  Jump(-hours(1));
  Pass(seconds(10));
  EXPECT_EQ(Earliest(seconds(15)), before - seconds(5) - hours(1)) << "what came later counts, too";
}

TEST_F(WallClockHistoryTest, OnlySoManyJumpsAreRemembered) {
  history.Note(now);
  const WallTime first = now.wall;
  for (int i = 0; i < 1000; ++i) {
    Pass(seconds(1));
    Jump(seconds(1));
  }
  EXPECT_GT(Earliest(seconds(1000)), first);
  EXPECT_EQ(Earliest(milliseconds(500)), now.wall - milliseconds(500) - seconds(1));
}

}  // namespace
}  // namespace loopfleet::coordinator
