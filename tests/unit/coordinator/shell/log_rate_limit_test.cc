#include "coordinator/shell/log_rate_limit.h"

#include <gtest/gtest.h>

namespace loopfleet::coordinator {
namespace {

TEST(LogRateLimit, OneLineASecondStandsForAll) {
  LogRateLimit pause;
  Instant now{std::chrono::seconds(0)};
  std::uint64_t lines = 0;
  std::uint64_t told = 0;
  for (int i = 0; i < 10'000; ++i) {  // for ten seconds
    if (const auto count = pause.Count(now)) {
      ++lines;
      told += *count;
    }
    now += std::chrono::milliseconds(1);
  }
  EXPECT_EQ(lines, 10U);
  EXPECT_EQ(told, 9'001U) << "the rest is told of by the next one";
  EXPECT_EQ(pause.Count(now), 1'000U);
}

TEST(LogRateLimit, AFewLinesMayComeAtOnceAfterASilence) {
  LogRateLimit pause(3);
  Instant now{std::chrono::seconds(0)};
  const auto lines = [&] {
    int count = 0;
    for (int i = 0; i < 10; ++i) count += pause.Count(now) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(lines(), 3);
  now += std::chrono::seconds(1);
  EXPECT_EQ(lines(), 1);
  now += std::chrono::hours(1);
  EXPECT_EQ(lines(), 3);
}

}  // namespace
}  // namespace loopfleet::coordinator
