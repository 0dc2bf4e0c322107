#include "client/cli/commands/waiting_notice.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/client/fake_coordinator.h"

namespace loopfleet::client {
namespace {

TEST(WaitingNotice, AReasonDoesNotSteerTheTerminal) {
  FakeCoordinator coordinator(
      "tcp://127.0.0.1:0",
      Greeting([](const wire::ClientRequest&) -> std::optional<wire::CoordinatorMessage> {
        wire::JobExplanation waits;
        waits.job = {BatchId{1}, 0};
        waits.state = wire::JobState::kQueued;
        waits.reason = "queued: no worker but a\x1b[2J";
        return waits;
      }));
  auto client = Client::Connect({.address = coordinator.endpoint()});
  ASSERT_TRUE(client.has_value()) << client.error().message;
  WaitingNotice notice(*client, std::chrono::seconds(0));
  wire::OutcomePage page;
  page.batch.batch = BatchId{1};
  page.batch.job_count = 1;
  EXPECT_EQ(notice.OnPage(page), R"(job 1.0: queued: no worker but a\x1b[2J)");
}

}  // namespace
}  // namespace loopfleet::client
