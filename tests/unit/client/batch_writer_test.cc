#include "client/batch_writer.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/unit/client/fake_coordinator.h"

namespace loopfleet::client {
namespace {

// Accepts all jobs into batch 5.
FakeCoordinator::Mind Accepting() {
  return Greeting(
      [](const wire::ClientRequest& request) -> std::optional<wire::CoordinatorMessage> {
        const auto& submit = std::get<wire::SubmitJobs>(request.message);
        return wire::Accepted{.batch = {5},
                              .job_count = static_cast<std::uint32_t>(submit.jobs.size())};
      });
}

std::vector<wire::SubmitJobs> SubmissionsTo(const FakeCoordinator& coordinator) {
  std::vector<wire::SubmitJobs> all;
  for (const auto& request : coordinator.Requests()) {
    if (const auto* submit = std::get_if<wire::SubmitJobs>(&request.message))
      all.push_back(*submit);
  }
  return all;
}

JobSpec JobWithTag(std::string tag) {
  return {.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm4_4_4"}, .tag = std::move(tag)};
}

class BatchWriterTest : public ::testing::Test {
 protected:
  BatchWriterTest()
      : coordinator_("tcp://127.0.0.1:0", Accepting()),
        client_(Client::Connect({.address = coordinator_.endpoint()}).value()) {}

  FakeCoordinator coordinator_;
  Client client_;
};

TEST_F(BatchWriterTest, CutsManyJobsIntoMessagesOfOneBatch) {
  const std::size_t count = wire::kMaxJobsPerMessage * 2 + 5;
  BatchWriter writer(client_);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(writer.Add(JobWithTag(std::to_string(i))).has_value());
  }
  ASSERT_TRUE(writer.Finish().has_value());
  EXPECT_EQ(writer.batch(), BatchId{5});
  EXPECT_EQ(writer.accepted_jobs(), count);

  const auto submissions = SubmissionsTo(coordinator_);
  ASSERT_GE(submissions.size(), 3u);
  std::size_t next = 0;
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    const bool first = i == 0;
    const bool last = i + 1 == submissions.size();
    EXPECT_EQ(submissions[i].append_to.has_value(), !first);
    EXPECT_EQ(submissions[i].end, last ? wire::BatchEnd::kComplete : wire::BatchEnd::kMoreFollows);
    for (const JobSpec& job : submissions[i].jobs) EXPECT_EQ(job.tag, std::to_string(next++));
  }
  EXPECT_EQ(next, count);
}

TEST_F(BatchWriterTest, CutsLargeJobsByTheirBytes) {
  BatchWriter writer(client_);
  const std::string tag = "\"" + std::string(60'000, 'x') + "\"";
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(writer.Add(JobWithTag(tag)).has_value());
  ASSERT_TRUE(writer.Finish().has_value());
  EXPECT_GE(SubmissionsTo(coordinator_).size(), 3u) << "2.4 MB do not fit two frames";
  EXPECT_EQ(writer.accepted_jobs(), 40u);
}

TEST_F(BatchWriterTest, RefusesATagThatIsNotJson) {
  BatchWriter writer(client_);
  const auto added = writer.Add(JobWithTag("run {4"));
  ASSERT_FALSE(added.has_value());
  EXPECT_EQ(added.error().refusal->code, FailureCode::kMalformed);
}

TEST_F(BatchWriterTest, RefusesAJobThatNoMessageCanHold) {
  BatchWriter writer(client_);
  const auto added = writer.Add(JobWithTag("\"" + std::string(2 << 20, 'x') + "\""));
  ASSERT_FALSE(added.has_value());
  EXPECT_TRUE(added.error().refusal.has_value());
  ASSERT_TRUE(writer.Add(JobWithTag("1")).has_value()) << "the next one is not affected";
  ASSERT_TRUE(writer.Finish().has_value());
  EXPECT_EQ(writer.accepted_jobs(), 1u);
}

}  // namespace
}  // namespace loopfleet::client
