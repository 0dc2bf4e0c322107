#include "common/job/ids.h"

#include <gtest/gtest.h>

namespace loopfleet {
namespace {

TEST(JobId, IsReadAsItIsPrinted) {
  const JobId id{.batch = BatchId{12}, .index = 3};
  EXPECT_EQ(ParseJobId(fmt::format("{}", id)), id);
  for (const char* text : {"", "12", ".3", "12.", "0.3", "12.-3", "12.4294967296", "12.3.4"}) {
    EXPECT_FALSE(ParseJobId(text)) << text;
  }
}

}  // namespace
}  // namespace loopfleet
