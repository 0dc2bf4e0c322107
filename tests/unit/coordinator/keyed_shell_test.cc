// The real coordinator process with keys: what each kind of message does when the key of its
// connection has been revoked (T13: nothing), while the connection lives.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/wire/key_file.h"
#include "tests/unit/coordinator/coordinator_process.h"

namespace loopfleet::coordinator {
namespace {

namespace fs = std::filesystem;
using wire::Role;

class KeyedShellTest : public ::testing::Test {
 protected:
  KeyedShellTest() : keys_(dir_.path() / "keys") {
    for (const Role role : {Role::kClient, Role::kWorker, Role::kAdmin}) {
      fs::create_directories(wire::AuthorizedDir(keys_, role));
    }
    LF_CHECK(
        wire::WriteSecretKeyFile(wire::CoordinatorSecretFile(keys_),
                                 {.role = Role::kCoordinator, .name = "coordinator", .keys = own_}),
        "keys");
    coordinator_.emplace(dir_.path(), std::vector<std::string>{"--keys", keys_.native()});
  }

  fs::path FileOf(Role role, const std::string& name) const {
    return wire::AuthorizedDir(keys_, role) / (name + ".key");
  }

  // Also while it runs.
  wire::PeerKeys Authorize(Role role, const std::string& name) {
    const auto pair = wire::KeyPair::Generate();
    LF_CHECK(wire::WritePublicKeyFile(FileOf(role, name),
                                      {.role = role, .name = name, .key = pair.public_key}),
             "key");
    return {.self = {.role = role, .name = name}, .own = pair, .coordinator = own_.public_key};
  }

  wire::Dealer Connect(const std::string& endpoint, const wire::PeerKeys& keys) {
    auto dealer = wire::Dealer::Connect(context_, endpoint, {.keys = &keys});
    LF_CHECK(dealer, "{}", dealer.error().message);
    return *std::move(dealer);
  }

  // Sends and waits for the next frame of all.
  static std::string Exchange(wire::Dealer& dealer, const std::string& frame) {
    std::optional<std::string> answer;
    bool sent = false;
    Await("an answer", [&] {
      sent = sent || dealer.Send(frame) == wire::SendResult::kSent;
      answer = dealer.Receive();
      return answer.has_value();
    });
    return *std::move(answer);
  }

  wire::CoordinatorReply Ask(wire::Dealer& dealer, wire::ClientMessage message) {
    return wire::DecodeCoordinatorReply(
               Exchange(dealer, wire::Encode(wire::ClientRequest{.number = ++number_,
                                                                 .message = std::move(message)})))
        .value();
  }

  const PrivateDir dir_;
  const fs::path keys_;
  const wire::KeyPair own_ = wire::KeyPair::Generate();
  wire::Context context_;
  std::optional<CoordinatorProcess> coordinator_;
  std::uint64_t number_ = 0;
};

std::vector<wire::ClientMessage> EveryRequest(BatchId batch) {
  return {wire::ClientHello{.client = Uuid::Random()},
          wire::SubmitJobs{
              .request_id = Uuid::Random(),
              .jobs = {JobSpec{.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm4_4_4"}}}},
          wire::FetchOutcomes{.batch = batch},
          wire::CancelBatch{.batch = batch},
          wire::ListBatches{},
          wire::ShowBatch{.batch = batch},
          wire::ShowJob{.job = {.batch = batch, .index = 0}},
          wire::ListWorkers{},
          wire::ExplainJob{.job = {.batch = batch, .index = 0}}};
}

TEST_F(KeyedShellTest, NoRequestOfARevokedKeyIsActedUpon) {
  const auto root_keys = Authorize(Role::kAdmin, "root");
  wire::Dealer root = Connect(coordinator_->clients, root_keys);
  Ask(root, wire::ClientHello{.client = Uuid::Random()});

  const auto alice_keys = Authorize(Role::kClient, "alice");
  wire::Dealer alice = Connect(coordinator_->clients, alice_keys);
  Ask(alice, wire::ClientHello{.client = Uuid::Random()});
  const auto accepted = Ask(alice, EveryRequest({})[1]);
  const BatchId batch = std::get<wire::Accepted>(accepted.message).batch;

  fs::remove(FileOf(Role::kClient, "alice"));
  std::vector<std::string> frames = {"not even a message"};
  for (const wire::ClientMessage& message : EveryRequest(batch)) {
    frames.push_back(wire::Encode(wire::ClientRequest{.number = ++number_, .message = message}));
  }
  for (const std::string& frame : frames) {
    const auto reply = wire::DecodeCoordinatorReply(Exchange(alice, frame)).value();
    EXPECT_EQ(reply.number, 0u) << "not a byte of it was read";
    const auto* refused = std::get_if<wire::Refused>(&reply.message);
    ASSERT_NE(refused, nullptr);
    EXPECT_EQ(refused->failure.code, FailureCode::kUnauthenticated);
  }
  const auto list = Ask(root, wire::ListBatches{});
  const auto& batches = std::get<wire::BatchList>(list.message).batches;
  ASSERT_EQ(batches.size(), 1u) << "what was accepted before stays, and nothing came to it";
  EXPECT_EQ(batches.front().batch, batch);
  EXPECT_NE(batches.front().state, wire::BatchState::kCancelled);
}

TEST_F(KeyedShellTest, NoMessageOfARevokedWorkerIsActedUpon) {
  const auto root_keys = Authorize(Role::kAdmin, "root");
  wire::Dealer root = Connect(coordinator_->clients, root_keys);
  const auto workers = [&] {
    return std::get<wire::WorkerList>(Ask(root, wire::ListWorkers{}).message).workers;
  };
  const auto node_keys = Authorize(Role::kWorker, "node7");
  wire::Dealer node = Connect(coordinator_->workers, node_keys);
  const wire::WorkerHello hello{.worker = Uuid::Random(),
                                .name = "host",
                                .credit = 1,
                                .hardware = {.hardware_class = "class"},
                                .compiler = {.llvm = "0", .tier = "none", .revision = "0"},
                                .policy = "policy"};
  const auto welcome = wire::DecodeWorkerCommand(Exchange(node, wire::Encode(hello))).value();
  ASSERT_TRUE(std::holds_alternative<wire::WorkerWelcome>(welcome));
  ASSERT_EQ(workers().size(), 1u);
  EXPECT_EQ(workers().front().name, "node7/host");

  fs::remove(FileOf(Role::kWorker, "node7"));
  EXPECT_EQ(workers().size(), 0u) << "it is gone before it says anything";
  for (const wire::WorkerMessage& message :
       {wire::WorkerMessage(hello), wire::WorkerMessage(wire::Heartbeat{}),
        wire::WorkerMessage(wire::Reports{}), wire::WorkerMessage(wire::Goodbye{})}) {
    const auto command = wire::DecodeWorkerCommand(Exchange(node, wire::Encode(message))).value();
    const auto* refused = std::get_if<wire::Refused>(&command);
    ASSERT_NE(refused, nullptr);
    EXPECT_EQ(refused->failure.code, FailureCode::kUnauthenticated);
  }
  EXPECT_EQ(workers().size(), 0u);
}

// Whoever has an admin's key cannot drain in the name of another.
TEST_F(KeyedShellTest, WhoDrainsIsWhoseKeyItIs) {
  const auto root_keys = Authorize(Role::kAdmin, "root");
  wire::Dealer root = Connect(coordinator_->clients, root_keys);
  Ask(root, wire::ClientHello{.client = Uuid::Random()});
  const auto node_keys = Authorize(Role::kWorker, "node7");
  wire::Dealer node = Connect(coordinator_->workers, node_keys);
  Exchange(node, wire::Encode(
                     wire::WorkerHello{.worker = Uuid::Random(),
                                       .name = "host",
                                       .credit = 1,
                                       .hardware = {.hardware_class = "class"},
                                       .compiler = {.llvm = "0", .tier = "none", .revision = "0"},
                                       .policy = "policy"}));
  const auto drained = Ask(root, wire::SetDrain{.target = "node7/host", .by = "somebody else"});
  const auto* list = std::get_if<wire::WorkerList>(&drained.message);
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->workers.size(), 1u);
  EXPECT_EQ(list->workers[0].drain.value().by, "root");
}

// The same name with another key is the same client, over a new connection.
TEST_F(KeyedShellTest, ANewKeyOfTheSameNameOwnsTheOldBatches) {
  wire::PeerKeys old_keys = Authorize(Role::kClient, "alice");
  wire::Dealer before = Connect(coordinator_->clients, old_keys);
  Ask(before, wire::ClientHello{.client = Uuid::Random()});
  const BatchId batch = std::get<wire::Accepted>(Ask(before, EveryRequest({})[1]).message).batch;
  fs::remove(FileOf(Role::kClient, "alice"));
  const auto new_keys = Authorize(Role::kClient, "alice");
  wire::Dealer after = Connect(coordinator_->clients, new_keys);
  Ask(after, wire::ClientHello{.client = Uuid::Random()});
  const auto cancelled = Ask(after, wire::CancelBatch{.batch = batch});
  EXPECT_EQ(std::get<wire::BatchInfo>(cancelled.message).state, wire::BatchState::kCancelled);
}

}  // namespace
}  // namespace loopfleet::coordinator
