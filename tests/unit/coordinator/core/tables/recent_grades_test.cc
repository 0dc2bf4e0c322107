#include "coordinator/core/tables/recent_grades.h"

#include <gtest/gtest.h>

namespace loopfleet::coordinator {
namespace {

TEST(RecentGrades, CountsTheNewest32) {
  RecentGrades grades;
  EXPECT_EQ(grades.figures(), 0U);
  grades.Add(Grade::kA);
  grades.Add(Grade::kC);
  grades.Add(Grade::kD);
  EXPECT_EQ(grades.figures(), 3U);
  EXPECT_EQ(grades.imprecise(), 2U);
  for (int i = 0; i < 31; ++i) grades.Add(Grade::kB);
  EXPECT_EQ(grades.figures(), 32U);
  EXPECT_EQ(grades.imprecise(), 1U);  // the one of grade D
  grades.Add(Grade::kB);
  EXPECT_EQ(grades.imprecise(), 0U);
}

}  // namespace
}  // namespace loopfleet::coordinator
