// Results that an operator flags, as `loopfleet audit` does.

#include <gtest/gtest.h>

#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

TEST(Core, AFlagIsAnsweredOnceItIsOnDisk) {
  OneLease h;
  h.Report("w", h.lease);
  h.Write();
  const auto number =
      h.Ask("c", wire::FlagResults{.jobs = {h.lease.job}, .reason = "two hosts disagree"});
  EXPECT_FALSE(h.TakeReply<wire::Accepted>("c", number));
  h.Write();
  EXPECT_EQ(h.TakeReply<wire::Accepted>("c", number),
            (wire::Accepted{.batch = h.lease.job.batch, .first_index = 0, .job_count = 1}));
  ASSERT_EQ(h.disk.doubted.size(), 1U);
  EXPECT_EQ(h.disk.doubted[0].job, h.lease.job);
  EXPECT_EQ(h.disk.doubted[0].reason, "two hosts disagree");
  EXPECT_EQ(h.disk.doubted[0].flagged_at, h.now.wall);
}

TEST(Core, WhatHasNoOutcomeYetCannotBeFlagged) {
  OneLease h;
  const auto number = h.Ask("c", wire::FlagResults{.jobs = {h.lease.job}});
  const auto refused = h.TakeReply<wire::Refused>("c", number);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->failure.code, FailureCode::kNotFound);
  EXPECT_TRUE(h.unwritten.empty());
}

TEST(Core, WhatTheStoreHasNoOutcomeOfCannotBeFlagged) {
  OneLease h;
  h.Give(ClientAsked{.peer = "c",
                     .number = 99,
                     .question = wire::FlagResults{.jobs = {MakeJobId(7, 0)}},
                     .no_outcome = Failure{.code = FailureCode::kNotFound, .message = "test"}});
  const auto refused = h.TakeReply<wire::Refused>("c", 99);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->failure.code, FailureCode::kNotFound);
  EXPECT_TRUE(h.unwritten.empty());
}

TEST(Core, AStrangerFlagsNothing) {
  OneLease h;
  h.Report("w", h.lease);
  h.Write();
  const auto number = h.Ask("stranger", wire::FlagResults{.jobs = {h.lease.job}});
  EXPECT_EQ(h.TakeReply<wire::Refused>("stranger", number)->failure.code,
            FailureCode::kUnauthenticated);
  EXPECT_TRUE(h.unwritten.empty());
}

}  // namespace
}  // namespace loopfleet::coordinator
