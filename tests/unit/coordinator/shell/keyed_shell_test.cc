// The real coordinator process with keys: every kind of message from every peer that has no
// right to it. The messages are the golden frames, which cover every kind in the schema, so a new
// kind is tested automatically.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "common/wire/bounds.h"
#include "common/wire/keys/key_file.h"
#include "coordinator/core/rules/permission.h"
#include "tests/unit/coordinator/shell/coordinator_process.h"
#include "tests/unit/wire/codec/fixed_messages.h"

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

  // Also works while the coordinator runs.
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

  // Sends, and waits for the next frame of any kind.
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

  // Expects that no worker was registered or drained, and that the batch still runs.
  void ExpectUntouched(wire::Dealer& admin, BatchId batch) {
    const auto fleet = Ask(admin, wire::ShowFleet{.max_events = wire::kMaxEventsPerList});
    for (const wire::FleetEvent& event : std::get<wire::FleetInfo>(fleet.message).events) {
      EXPECT_FALSE(event.kind.starts_with("worker.")) << event.kind << ' ' << event.subject;
    }
    const auto workers = Ask(admin, wire::ListWorkers{});
    EXPECT_TRUE(std::get<wire::WorkerList>(workers.message).workers.empty());
    const auto shown = Ask(admin, wire::ShowBatch{.batch = batch});
    EXPECT_NE(std::get<wire::BatchInfo>(shown.message).state, wire::BatchState::kCancelled);
  }

  std::uint64_t AcceptedJobs(wire::Dealer& admin) {
    return std::get<wire::FleetInfo>(Ask(admin, wire::ShowFleet{}).message).accepted_jobs;
  }

  const PrivateDir dir_;
  const fs::path keys_;
  const wire::KeyPair own_ = wire::KeyPair::Generate();
  wire::Context context_;
  std::optional<CoordinatorProcess> coordinator_;
  std::uint64_t number_ = 0;
};

wire::SubmitJobs OneJob() {
  return {.request_id = Uuid::Random(),
          .jobs = {JobSpec{.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm4_4_4"}}}};
}

// One request of each kind, about this batch where it names one.
std::vector<wire::ClientMessage> EveryRequest(BatchId batch) {
  std::vector<wire::ClientMessage> messages;
  for (auto& [name, request] : wire::FixedRequests()) {
    std::visit(
        [&](auto& message) {
          if constexpr (requires { message.batch = batch; }) message.batch = batch;
          if constexpr (requires { message.job.batch = batch; }) {
            message.job = {.batch = batch, .index = 0};
          }
        },
        request.message);
    if (auto* submit = std::get_if<wire::SubmitJobs>(&request.message)) *submit = OneJob();
    messages.push_back(std::move(request.message));
  }
  return messages;
}

// One frame of every kind that any peer sends.
std::vector<std::string> EveryFrame(BatchId batch) {
  std::vector<std::string> frames = {"not even a message"};
  std::uint64_t number = 1'000'000;
  for (const wire::ClientMessage& message : EveryRequest(batch)) {
    frames.push_back(wire::Encode(wire::ClientRequest{.number = ++number, .message = message}));
  }
  const auto add = [&](const auto& messages) {
    for (const auto& [name, message] : messages) frames.push_back(wire::Encode(message));
  };
  add(wire::FixedWorkerMessages());
  add(wire::FixedReplies());
  add(wire::FixedWorkerCommands());
  return frames;
}

wire::WorkerHello AWorker() {
  return {.worker = Uuid::Random(),
          .name = "host",
          .credit = 1,
          .hardware = {.hardware_class = "class"},
          .compiler = {.llvm = "0", .tier = "none", .revision = "0"},
          .policy = "policy"};
}

TEST_F(KeyedShellTest, NoRequestOfARevokedKeyIsActedUpon) {
  const auto root_keys = Authorize(Role::kAdmin, "root");
  wire::Dealer root = Connect(coordinator_->clients, root_keys);
  Ask(root, wire::ClientHello{.client = Uuid::Random()});

  const auto alice_keys = Authorize(Role::kClient, "alice");
  wire::Dealer alice = Connect(coordinator_->clients, alice_keys);
  Ask(alice, wire::ClientHello{.client = Uuid::Random()});
  const auto accepted = Ask(alice, OneJob());
  const BatchId batch = std::get<wire::Accepted>(accepted.message).batch;

  fs::remove(FileOf(Role::kClient, "alice"));
  for (const std::string& frame : EveryFrame(batch)) {
    const auto reply = wire::DecodeCoordinatorReply(Exchange(alice, frame)).value();
    EXPECT_EQ(reply.number, 0u) << "not a byte of it was read";
    const auto* refused = std::get_if<wire::Refused>(&reply.message);
    ASSERT_NE(refused, nullptr);
    EXPECT_EQ(refused->failure.code, FailureCode::kUnauthenticated);
  }
  ExpectUntouched(root, batch);
  EXPECT_EQ(AcceptedJobs(root), 1u);
}

TEST_F(KeyedShellTest, NoMessageOfARevokedWorkerIsActedUpon) {
  const auto root_keys = Authorize(Role::kAdmin, "root");
  wire::Dealer root = Connect(coordinator_->clients, root_keys);
  const auto workers = [&] {
    return std::get<wire::WorkerList>(Ask(root, wire::ListWorkers{}).message).workers;
  };
  const auto node_keys = Authorize(Role::kWorker, "node7");
  wire::Dealer node = Connect(coordinator_->workers, node_keys);
  const wire::WorkerHello hello = AWorker();
  const auto welcome = wire::DecodeWorkerCommand(Exchange(node, wire::Encode(hello))).value();
  ASSERT_TRUE(std::holds_alternative<wire::WorkerWelcome>(welcome));
  ASSERT_EQ(workers().size(), 1u);
  EXPECT_EQ(workers().front().name, "node7/host");

  fs::remove(FileOf(Role::kWorker, "node7"));
  EXPECT_EQ(workers().size(), 0u) << "it is gone before it says anything";
  for (const std::string& frame : EveryFrame({})) {
    const auto command = wire::DecodeWorkerCommand(Exchange(node, frame)).value();
    const auto* refused = std::get_if<wire::Refused>(&command);
    ASSERT_NE(refused, nullptr);
    EXPECT_EQ(refused->failure.code, FailureCode::kUnauthenticated);
  }
  EXPECT_EQ(workers().size(), 0u);
}

// The sum of the coordinator's metrics whose name begins with `series`.
double CountOf(const std::string& page, std::string_view series) {
  double sum = 0;
  for (std::size_t at = page.find(series); at != std::string::npos; at = page.find(series, at)) {
    const std::size_t space = page.find(' ', at);
    if (at == 0 || page[at - 1] == '\n') sum += std::stod(page.substr(space + 1));
    at = space;
  }
  return sum;
}

// Every key that an endpoint does not admit, with every frame.
TEST_F(KeyedShellTest, NoMessageOfAPeerThatIsNotLetInIsActedUpon) {
  wire::Dealer root = Connect(coordinator_->clients, Authorize(Role::kAdmin, "root"));
  const wire::PeerKeys alice_keys = Authorize(Role::kClient, "alice");
  wire::Dealer alice = Connect(coordinator_->clients, alice_keys);
  Ask(alice, wire::ClientHello{.client = Uuid::Random()});
  const auto accepted = Ask(alice, OneJob());
  const BatchId batch = std::get<wire::Accepted>(accepted.message).batch;

  wire::PeerKeys unknown = alice_keys;
  unknown.own = wire::KeyPair::Generate();
  wire::PeerKeys coordinators = alice_keys;
  coordinators.own = own_;
  wire::PeerKeys misled = alice_keys;
  misled.coordinator = wire::KeyPair::Generate().public_key;
  const wire::PeerKeys revoked_client = Authorize(Role::kClient, "gone");
  const wire::PeerKeys revoked_worker = Authorize(Role::kWorker, "gone");
  fs::remove(FileOf(Role::kClient, "gone"));
  fs::remove(FileOf(Role::kWorker, "gone"));
  const wire::PeerKeys node = Authorize(Role::kWorker, "node7");
  const wire::PeerKeys other_admin = Authorize(Role::kAdmin, "other");

  struct Case {
    const char* who;
    const wire::PeerKeys* keys;  // null: no keys
    bool at_clients;
    bool at_workers;
  };
  const std::vector<Case> cases = {{"nobody", nullptr, true, true},
                                   {"unknown", &unknown, true, true},
                                   {"the coordinator", &coordinators, true, true},
                                   {"misled", &misled, true, true},
                                   {"revoked client", &revoked_client, true, true},
                                   {"revoked worker", &revoked_worker, true, true},
                                   {"worker", &node, true, false},
                                   {"client", &alice_keys, false, true},
                                   {"admin", &other_admin, false, true}};
  const std::vector<std::string> frames = EveryFrame(batch);
  const double malformed =
      CountOf(HttpGet(coordinator_->http, "/metrics"), "loopfleet_malformed_messages_total");
  for (const Case& one : cases) {
    for (const bool is_clients : {true, false}) {
      if (!(is_clients ? one.at_clients : one.at_workers)) continue;
      SCOPED_TRACE(std::string(one.who) + (is_clients ? " at the clients'" : " at the workers'"));
      auto dealer = wire::Dealer::Connect(
          context_, is_clients ? coordinator_->clients : coordinator_->workers,
          {.keys = one.keys, .watch_handshake = true});
      ASSERT_TRUE(dealer.has_value()) << dealer.error().message;
      for (const std::string& frame : frames) {  // queued until it is connected
        ASSERT_EQ(dealer->Send(frame), wire::SendResult::kSent);
      }
      Await("the refusal", [&] { return dealer->TakeHandshakeFailure().has_value(); });
      EXPECT_FALSE(dealer->Receive().has_value());
    }
  }
  ExpectUntouched(root, batch);
  EXPECT_EQ(AcceptedJobs(root), 1u);
  EXPECT_EQ(CountOf(HttpGet(coordinator_->http, "/metrics"), "loopfleet_malformed_messages_total"),
            malformed)
      << "no decoder saw any of them";
}

// For each role that is admitted, a request is refused with FORBIDDEN exactly where the table of
// requests says so. Permission.WhatEachRequestNeeds checks the table itself.
TEST_F(KeyedShellTest, EveryRequestOfEveryRoleAboutAnothersBatch) {
  wire::Dealer alice = Connect(coordinator_->clients, Authorize(Role::kClient, "alice"));
  Ask(alice, wire::ClientHello{.client = Uuid::Random()});
  for (const Role role : {Role::kClient, Role::kAdmin}) {
    const BatchId batch = std::get<wire::Accepted>(Ask(alice, OneJob()).message).batch;
    wire::Dealer other = Connect(coordinator_->clients, Authorize(role, "other"));
    Ask(other, wire::ClientHello{.client = Uuid::Random()});
    for (const wire::ClientMessage& message : EveryRequest(batch)) {
      SCOPED_TRACE(std::string(wire::NameOf(role)) + ", request " +
                   std::to_string(message.index()));
      const auto reply = Ask(other, message);
      const auto* refused = std::get_if<wire::Refused>(&reply.message);
      const bool is_forbidden =
          refused != nullptr && refused->failure.code == FailureCode::kForbidden;
      EXPECT_EQ(is_forbidden, !IsPermitted(role, NeedOf(message), Ownership::kAnothers));
    }
  }
}

// A client's key admits only clients' messages: messages of workers and of the coordinator have no
// effect there.
TEST_F(KeyedShellTest, AClientCannotSayWhatWorkersSay) {
  wire::Dealer root = Connect(coordinator_->clients, Authorize(Role::kAdmin, "root"));
  wire::Dealer alice = Connect(coordinator_->clients, Authorize(Role::kClient, "alice"));
  Ask(alice, wire::ClientHello{.client = Uuid::Random()});
  const BatchId batch = std::get<wire::Accepted>(Ask(alice, OneJob()).message).batch;
  wire::Dealer bob = Connect(coordinator_->clients, Authorize(Role::kClient, "bob"));
  for (const std::string& frame : EveryFrame(batch)) {
    ASSERT_EQ(bob.Send(frame), wire::SendResult::kSent);
  }
  // Messages of a connection are read in turn: this answer comes after them all.
  constexpr std::uint64_t kLast = 2'000'000;
  ASSERT_EQ(
      bob.Send(wire::Encode(wire::ClientRequest{.number = kLast, .message = wire::ListBatches{}})),
      wire::SendResult::kSent);
  Await("the last answer", [&] {
    const auto frame = bob.Receive();
    return frame && wire::DecodeCoordinatorReply(*frame).value().number == kLast;
  });
  ExpectUntouched(root, batch);
}

// A worker's key admits only workers' messages: messages of clients have no effect there.
TEST_F(KeyedShellTest, AWorkerCannotAskWhatClientsAsk) {
  wire::Dealer root = Connect(coordinator_->clients, Authorize(Role::kAdmin, "root"));
  wire::Dealer alice = Connect(coordinator_->clients, Authorize(Role::kClient, "alice"));
  Ask(alice, wire::ClientHello{.client = Uuid::Random()});
  const BatchId batch = std::get<wire::Accepted>(Ask(alice, OneJob()).message).batch;
  wire::Dealer node = Connect(coordinator_->workers, Authorize(Role::kWorker, "node7"));
  for (const std::string& frame : EveryFrame(batch)) {
    ASSERT_EQ(node.Send(frame), wire::SendResult::kSent);
  }
  // Messages of a connection are read in turn: this answer comes after them all.
  ASSERT_EQ(node.Send(wire::Encode(AWorker())), wire::SendResult::kSent);
  Await("the worker", [&] {
    while (node.Receive()) {
    }
    const auto list = Ask(root, wire::ListWorkers{});
    return std::ranges::any_of(std::get<wire::WorkerList>(list.message).workers,
                               [](const auto& worker) { return worker.name == "node7/host"; });
  });
  const auto shown = Ask(root, wire::ShowBatch{.batch = batch});
  EXPECT_NE(std::get<wire::BatchInfo>(shown.message).state, wire::BatchState::kCancelled);
  EXPECT_EQ(AcceptedJobs(root), 1u);
}

// An admin cannot drain in another admin's name.
TEST_F(KeyedShellTest, WhoDrainsIsWhoseKeyItIs) {
  const auto root_keys = Authorize(Role::kAdmin, "root");
  wire::Dealer root = Connect(coordinator_->clients, root_keys);
  Ask(root, wire::ClientHello{.client = Uuid::Random()});
  const auto node_keys = Authorize(Role::kWorker, "node7");
  wire::Dealer node = Connect(coordinator_->workers, node_keys);
  Exchange(node, wire::Encode(AWorker()));
  const auto drained = Ask(root, wire::SetDrain{.target = "node7/host", .by = "somebody else"});
  const auto* list = std::get_if<wire::WorkerList>(&drained.message);
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(list->workers.size(), 1u);
  EXPECT_EQ(list->workers[0].drain.value().by, "root");
}

// A new key under the same name is the same client, on a new connection.
TEST_F(KeyedShellTest, ANewKeyOfTheSameNameOwnsTheOldBatches) {
  wire::PeerKeys old_keys = Authorize(Role::kClient, "alice");
  wire::Dealer before = Connect(coordinator_->clients, old_keys);
  Ask(before, wire::ClientHello{.client = Uuid::Random()});
  const BatchId batch = std::get<wire::Accepted>(Ask(before, OneJob()).message).batch;
  fs::remove(FileOf(Role::kClient, "alice"));
  const auto new_keys = Authorize(Role::kClient, "alice");
  wire::Dealer after = Connect(coordinator_->clients, new_keys);
  Ask(after, wire::ClientHello{.client = Uuid::Random()});
  const auto cancelled = Ask(after, wire::CancelBatch{.batch = batch});
  EXPECT_EQ(std::get<wire::BatchInfo>(cancelled.message).state, wire::BatchState::kCancelled);
}

}  // namespace
}  // namespace loopfleet::coordinator
