// Malformed frames: each is refused with a reason, and the coordinator continues.

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "client/client.h"
#include "client/local_cluster.h"
#include "common/wire/codec/codec.h"
#include "common/wire/transport/poller.h"
#include "tests/support/paths.h"

namespace loopfleet::client {
namespace {

using namespace std::chrono_literals;

constexpr auto kAnswerLimit = 60s;

class MalformedFrameTest : public ::testing::Test {
 protected:
  MalformedFrameTest()
      : cluster_(LocalCluster::Start({.programs = LOOPFLEET_BIN_DIR, .workers = 0})) {}

  void SetUp() override { ASSERT_TRUE(cluster_.has_value()) << cluster_.error().message; }

  // Sends one frame and returns its reply.
  std::optional<wire::CoordinatorReply> Send(const std::string& frame) {
    wire::Context context;
    auto dealer = wire::Dealer::Connect(context, cluster_->address());
    if (!dealer) return std::nullopt;
    wire::Poller poller;
    poller.Add(*dealer);
    const auto end = std::chrono::steady_clock::now() + kAnswerLimit;
    bool sent = false;
    while (std::chrono::steady_clock::now() < end) {
      if (!sent) sent = dealer->Send(frame) == wire::SendResult::kSent;
      poller.Wait(10ms);
      if (const auto answer = dealer->Receive()) {
        auto reply = wire::DecodeCoordinatorReply(*answer);
        return reply ? std::optional(*std::move(reply)) : std::nullopt;
      }
    }
    return std::nullopt;
  }

  Result<LocalCluster> cluster_;
};

TEST_F(MalformedFrameTest, GarbageAndTruncatedFramesAreMalformed) {
  const std::string whole = wire::Encode(wire::ClientRequest{
      .number = 1, .message = wire::ClientHello{.client = Uuid::Random(), .program = "test"}});
  std::string flipped = whole;
  for (char& byte : flipped) byte = static_cast<char>(~byte);
  for (const std::string& frame :
       {std::string("x"), std::string(1000, '\xff'), whole.substr(0, whole.size() / 2), flipped}) {
    const auto reply = Send(frame);
    ASSERT_TRUE(reply.has_value()) << frame.size() << " bytes";
    const auto* refused = std::get_if<wire::Refused>(&reply->message);
    ASSERT_NE(refused, nullptr) << frame.size() << " bytes";
    EXPECT_EQ(refused->failure.code, FailureCode::kMalformed);
    EXPECT_FALSE(refused->failure.message.empty());
  }
  auto client = Client::Connect({.address = cluster_->address()});
  ASSERT_TRUE(client.has_value()) << "it goes on: " << client.error().message;
  EXPECT_TRUE(client->ListWorkers().has_value());
}

}  // namespace
}  // namespace loopfleet::client
