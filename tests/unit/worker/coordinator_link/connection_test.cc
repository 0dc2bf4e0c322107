#include "worker/coordinator_link/connection.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <thread>

#include "common/wire/codec/codec.h"
#include "monitoring/registry.h"
#include "tests/unit/wire/codec/newer.capnp.h"
#include "tests/unit/wire/keys/private_directory.h"

namespace loopfleet::worker {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 60s;
constexpr std::uint32_t kHeartbeatMs = 50;
// A silence that no busy machine causes by accident.
constexpr std::uint32_t kNeverSilent = 1'000'000;
constexpr std::uint32_t kSilentIntervals = 60;  // of kHeartbeatMs: 3 s, awaited by tests

// Holds its leases until the test finishes them.
class FakeRunner final : public LeaseRunner {
 public:
  bool Accept(wire::Lease lease) override {
    std::lock_guard lock(mutex_);
    if (held_.size() >= capacity) return false;
    held_.push_back({.lease = lease.lease, .job = lease.job});
    return true;
  }
  void Drop(std::span<const LeaseId> leases) override {
    std::lock_guard lock(mutex_);
    for (const LeaseId lease : leases) Erase(lease);
  }
  std::vector<LeaseId> DropUnstarted() override {  // the first one is the running one
    std::lock_guard lock(mutex_);
    std::vector<LeaseId> dropped;
    for (std::size_t i = 1; i < held_.size(); ++i) dropped.push_back(held_[i].lease);
    for (const LeaseId lease : dropped) Erase(lease);
    return dropped;
  }
  std::vector<LeaseId> GiveBack(std::span<const LeaseId>) override { return {}; }
  std::vector<wire::Report> TakeFinished() override {
    std::lock_guard lock(mutex_);
    for (const wire::Report& report : finished_) Erase(report.lease);
    return std::exchange(finished_, {});
  }
  std::vector<wire::HeldLease> Held() const override {
    std::lock_guard lock(mutex_);
    return held_;
  }
  void Finish(std::uint64_t lease) {
    std::lock_guard lock(mutex_);
    finished_.push_back({.lease = {lease},
                         .job = {.batch = {1}, .index = 0},
                         .evaluation = {.verdict = Failure{.code = FailureCode::kRunCrash,
                                                           .message = "as the test says"}}});
  }
  std::size_t capacity = 4;

 private:
  void Erase(LeaseId lease) {
    std::erase_if(held_, [&](const wire::HeldLease& held) { return held.lease == lease; });
  }
  mutable std::mutex mutex_;
  std::vector<wire::HeldLease> held_;
  std::vector<wire::Report> finished_;
};

// The test plays the coordinator, one message at a time.
class ConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    auto router = wire::Router::Bind(context_, Place(), {});
    ASSERT_TRUE(router) << router.error().message;
    endpoint_ = router->endpoint();
    router_.emplace(*std::move(router));
    Start(Silence());
  }
  virtual std::string Place() const { return "tcp://127.0.0.1:0"; }
  // After which silence, if any, the worker sends another hello. It repeats no other hello, so the
  // next one answers what the test did.
  virtual Connection::Options Silence() const {
    Connection::Options options;
    options.protocol.hello_interval = kPatience;
    options.protocol.silent_intervals = kNeverSilent;
    options.protocol.report_patience = kPatience;
    options.protocol.drain_limit = kPatience;
    return options;
  }
  void TearDown() override {
    if (!thread_.joinable()) return;
    stop_ = true;
    wakeup_.Signal();
    thread_.join();
  }

  // The worker's canary health, and the reference clock that it was sent.
  CanaryHealth canaries_;
  std::atomic<double> clock_mhz_{0};

  void Start(Connection::Options options) {
    options.coordinator = endpoint_;
    options.protocol.canaries = [this] { return canaries_; };
    options.longest_wait = 20ms;
    wire::WorkerHello hello{.worker = Uuid::Random(), .name = "tested", .pid = 7, .credit = 4};
    hello.policy = "none";
    hello.hardware.hardware_class = "cpu:tested";
    worker_ = hello.worker;
    connection_ = std::make_unique<Connection>(
        options,
        Connection::Parts{.context = context_,
                          .wakeup = wakeup_,
                          .runner = runner_,
                          .metrics = metrics_,
                          .clock = clock_,
                          .liveness = liveness_,
                          .set_reference_clock = [this](double mhz) { clock_mhz_ = mhz; },
                          .check_children = [this]() -> Status {
                            if (!stop_) return {};
                            return Fail(ErrorKind::kClosed, "the test is over");
                          }},
        hello);
    thread_ = std::thread([this] { ended_ = connection_->Run(); });
  }
  Status End() {
    thread_.join();
    return ended_;
  }

  // The next message of kind T from any peer; skips others.
  template <class T>
  T Expect() {
    const Instant deadline = clock_.Now() + kPatience;
    wire::Poller poller;
    poller.Add(*router_);
    while (clock_.Now() < deadline) {
      const std::optional<wire::Received> received = router_->Receive();
      if (!received) {
        poller.Wait(10ms);
        continue;
      }
      auto message = wire::DecodeWorkerMessage(received->frame);
      if (!message) {
        ADD_FAILURE() << message.error().message;
        continue;
      }
      peer_ = received->peer;
      if (std::holds_alternative<T>(*message)) return std::get<T>(*std::move(message));
      // A coordinator welcomes every hello, whatever else it waits for.
      if (std::holds_alternative<wire::WorkerHello>(*message)) SendWelcome();
    }
    ADD_FAILURE() << "no such message came";
    return {};
  }
  void Send(const wire::WorkerCommand& command) {
    EXPECT_EQ(router_->Send(peer_, wire::Encode(command)), wire::SendResult::kSent);
  }
  wire::WorkerHello Welcome() {
    wire::WorkerHello hello = Expect<wire::WorkerHello>();
    SendWelcome();
    return hello;
  }
  void SendWelcome() { Send(wire::WorkerWelcome{.epoch = 1, .heartbeat_ms = kHeartbeatMs}); }
  void Grant(std::vector<std::uint64_t> ids) {
    wire::Leases leases;
    for (const std::uint64_t id : ids) {
      leases.leases.push_back({.lease = {id},
                               .job = {.batch = {1}, .index = 0},
                               .spec = {.source = looptree::BenchmarkUri{"benchmark://x"}}});
    }
    Send(leases);
  }
  // Answers heartbeats until one satisfies `predicate`.
  template <class Predicate>
  wire::Heartbeat ExpectHeartbeat(Predicate predicate) {
    const Instant deadline = clock_.Now() + kPatience;
    while (clock_.Now() < deadline) {
      wire::Heartbeat heartbeat = Expect<wire::Heartbeat>();
      // A worker that has given up this connection says hello on another one.
      router_->Send(peer_, wire::Encode(wire::HeartbeatAnswer{}));
      if (predicate(heartbeat)) return heartbeat;
    }
    ADD_FAILURE() << "no such heartbeat came";
    return {};
  }
  void Finish(std::uint64_t lease) {
    runner_.Finish(lease);
    wakeup_.Signal();
  }

  const SystemClock clock_;
  Liveness liveness_{clock_};
  monitoring::Registry registry_;
  monitoring::WorkerMetrics metrics_{registry_, {}};
  wire::Context context_;
  wire::Wakeup wakeup_;
  FakeRunner runner_;
  std::string endpoint_;
  std::optional<wire::Router> router_;
  wire::PeerId peer_;
  Uuid worker_;
  std::unique_ptr<Connection> connection_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
  Status ended_;
};

// Says hello until it is answered, and again after a silence.
class SilenceTest : public ConnectionTest {
 protected:
  Connection::Options Silence() const override {
    Connection::Options options;
    options.protocol.hello_interval = 50ms;
    options.protocol.silent_intervals = kSilentIntervals;
    return options;
  }
};

// In a directory, as on one machine. Connects again after half a second of silence.
class DirectoryTest : public SilenceTest {
 protected:
  Connection::Options Silence() const override {
    Connection::Options options = SilenceTest::Silence();
    options.protocol.silent_intervals = 10;
    return options;
  }
  std::string Place() const override { return "ipc://" + directory_.path() + "/workers"; }

  const wire::PrivateDirectory directory_;
};

TEST_F(ConnectionTest, SaysWhoItIsAndIsHeard) {
  const wire::WorkerHello hello = Welcome();
  EXPECT_EQ(hello.worker, worker_);
  EXPECT_EQ(hello.name, "tested");
  EXPECT_EQ(hello.credit, 4U);
  EXPECT_TRUE(hello.held.empty());
  for (int i = 0; i < 3; ++i) {
    const auto heartbeat = ExpectHeartbeat([](const auto&) { return true; });
    EXPECT_EQ(heartbeat.drain, wire::DrainState::kServing);
  }
}

TEST_F(SilenceTest, SaysHelloUntilItIsAnswered) {
  Expect<wire::WorkerHello>();
  Expect<wire::WorkerHello>();
  Welcome();
  ExpectHeartbeat([](const auto&) { return true; });
}

TEST_F(ConnectionTest, TakesLeasesAndReportsThem) {
  Welcome();
  Grant({1, 2});
  ExpectHeartbeat([](const auto& heartbeat) { return heartbeat.held.size() == 2; });
  Finish(1);
  const wire::Reports reports = Expect<wire::Reports>();
  ASSERT_EQ(reports.reports.size(), 1U);
  EXPECT_EQ(reports.reports[0].lease, LeaseId{1});
  EXPECT_EQ(reports.reports[0].evaluation.failure().message, "as the test says");
  // Held until it is stored, and no longer.
  ExpectHeartbeat([](const auto& heartbeat) { return heartbeat.held.size() == 2; });
  Send(wire::ReportsStored{.leases = {{1}}});
  ExpectHeartbeat(
      [](const auto& heartbeat) { return heartbeat.held == std::vector<LeaseId>{{2}}; });
}

// Two leases of a later version; this one does not know the second one's action.
std::string LeasesOfALaterVersion() {
  capnp::MallocMessageBuilder builder;
  auto leases = builder.initRoot<newer_schema::WorkerCommand>().initLeases(2);
  for (std::uint32_t i = 0; i < 2; ++i) {
    leases[i].setLease(1 + i);
    leases[i].initJob().setBatch(1);
    leases[i].initSpec().initSource().setUri("benchmark://x");
  }
  leases[1].getSpec().initActions(1)[0].setTile(8);
  const kj::Array<capnp::word> words = capnp::messageToFlatArray(builder);
  return {words.asChars().begin(), words.asChars().size()};
}

TEST_F(ConnectionTest, OfALaterVersionsLeasesItRefusesWhatItCannotRead) {
  Welcome();
  EXPECT_EQ(router_->Send(peer_, LeasesOfALaterVersion()), wire::SendResult::kSent);
  const wire::Reports reports = Expect<wire::Reports>();
  ASSERT_EQ(reports.reports.size(), 1U);
  EXPECT_EQ(reports.reports[0].lease, LeaseId{2});
  EXPECT_EQ(reports.reports[0].evaluation.failure().code, FailureCode::kVersionMismatch);
  Send(wire::ReportsStored{.leases = {{2}}});
  ExpectHeartbeat(
      [](const auto& heartbeat) { return heartbeat.held == std::vector<LeaseId>{{1}}; });
}

TEST_F(ConnectionTest, ReportsAreSentAgainToACoordinatorThatForgotThem) {
  Welcome();
  Grant({1, 2});
  Finish(1);
  Expect<wire::Reports>();
  Send(wire::HelloWanted{});
  const wire::WorkerHello again = Welcome();
  EXPECT_EQ(again.worker, worker_);
  std::vector<std::uint64_t> held;
  for (const wire::HeldLease& lease : again.held) held.push_back(lease.lease.value);
  std::sort(held.begin(), held.end());
  EXPECT_EQ(held, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(Expect<wire::Reports>().reports.at(0).lease, LeaseId{1});
  Send(wire::ReportsStored{.leases = {{1}}});
  Send(wire::HelloWanted{});
  EXPECT_EQ(Welcome().held.size(), 1U);
}

TEST_F(SilenceTest, ASilentCoordinatorIsGreetedAnewOnANewConnection) {
  Welcome();
  const wire::PeerId first = peer_;
  Expect<wire::Heartbeat>();  // not answered, nor are those that follow
  Welcome();
  EXPECT_NE(peer_, first);
  ExpectHeartbeat([](const auto&) { return true; });
}

TEST_F(SilenceTest, ACoordinatorThatComesBackFindsItsWorker) {
  Welcome();
  Grant({5});
  ExpectHeartbeat([](const auto& heartbeat) { return heartbeat.held.size() == 1; });
  router_.reset();
  auto router = wire::Router::Bind(context_, endpoint_, {});
  const Instant deadline = clock_.Now() + kPatience;
  while (!router && clock_.Now() < deadline) {  // the port is freed in the background
    std::this_thread::yield();
    router = wire::Router::Bind(context_, endpoint_, {});
  }
  ASSERT_TRUE(router) << router.error().message;
  router_.emplace(*std::move(router));
  const wire::WorkerHello hello = Welcome();
  ASSERT_EQ(hello.held.size(), 1U);
  EXPECT_EQ(hello.held[0].lease, LeaseId{5});
}

TEST_F(DirectoryTest, ACoordinatorsDirectoryMayBeGoneForAMoment) {
  Welcome();
  router_.reset();
  const std::string aside = directory_.path() + ".aside";
  std::filesystem::rename(directory_.path(), aside);
  std::this_thread::sleep_for(2s);  // several attempts to connect
  std::filesystem::rename(aside, directory_.path());
  auto router = wire::Router::Bind(context_, endpoint_, {});
  const Instant deadline = clock_.Now() + kPatience;
  while (!router && clock_.Now() < deadline) {  // the old socket is closed in the background
    std::this_thread::yield();
    router = wire::Router::Bind(context_, endpoint_, {});
  }
  ASSERT_TRUE(router) << router.error().message;
  router_.emplace(*std::move(router));
  EXPECT_EQ(Welcome().worker, worker_);
}

// A restarted coordinator gives work to others within a second. Only the restored connection
// prompts this hello.
TEST_F(ConnectionTest, AConnectionThatIsThereAgainIsGreetedAtOnce) {
  Expect<wire::WorkerHello>();
  Send(wire::WorkerWelcome{.epoch = 1, .heartbeat_ms = 3'600'000});
  Expect<wire::Heartbeat>();  // the only one for an hour
  Grant({5});
  const Instant deadline = clock_.Now() + kPatience;
  while (runner_.Held().empty() && clock_.Now() < deadline) std::this_thread::yield();
  router_.reset();
  auto router = wire::Router::Bind(context_, endpoint_, {});
  while (!router && clock_.Now() < deadline) {  // the port is freed in the background
    std::this_thread::yield();
    router = wire::Router::Bind(context_, endpoint_, {});
  }
  ASSERT_TRUE(router) << router.error().message;
  router_.emplace(*std::move(router));
  const wire::WorkerHello hello = Expect<wire::WorkerHello>();
  ASSERT_EQ(hello.held.size(), 1U);
  EXPECT_EQ(hello.held[0].lease, LeaseId{5});
}

TEST_F(ConnectionTest, LeasesBeyondTheBoundAreNotHeld) {
  Welcome();
  Grant({1, 2, 3, 4, 5, 6});
  const auto heartbeat = ExpectHeartbeat([](const auto& each) { return !each.held.empty(); });
  EXPECT_EQ(heartbeat.held.size(), 4U);
}

TEST_F(ConnectionTest, RevokedLeasesAreGone) {
  Welcome();
  Grant({1, 2});
  Finish(1);
  Expect<wire::Reports>();
  Send(wire::Revoke{.leases = {{1}, {2}}});
  ExpectHeartbeat([](const auto& heartbeat) { return heartbeat.held.empty(); });
}

TEST_F(ConnectionTest, ADrainFinishesWhatRunsAndGivesTheRestBack) {
  Welcome();
  Grant({1, 2, 3});
  ExpectHeartbeat([](const auto& heartbeat) { return heartbeat.held.size() == 3; });
  connection_->RequestDrain();
  ExpectHeartbeat(
      [](const auto& heartbeat) { return heartbeat.drain == wire::DrainState::kDraining; });
  wire::Returned returned = Expect<wire::Returned>();
  std::sort(returned.leases.begin(), returned.leases.end());
  EXPECT_EQ(returned.leases, (std::vector<LeaseId>{{2}, {3}}));
  // Each is held until the coordinator has taken it back.
  const auto holds_one = [](const auto& heartbeat) { return heartbeat.held.size() == 1; };
  Send(wire::Revoke{.leases = {{2}, {3}}});
  ExpectHeartbeat(holds_one);
  Grant({4});  // crosses the heartbeat
  EXPECT_EQ(Expect<wire::Returned>().leases, std::vector<LeaseId>{{4}});
  Send(wire::Revoke{.leases = {{4}}});
  ExpectHeartbeat(holds_one);
  Finish(1);
  EXPECT_EQ(Expect<wire::Reports>().reports.at(0).lease, LeaseId{1});
  Send(wire::ReportsStored{.leases = {{1}}});
  EXPECT_TRUE(Expect<wire::Goodbye>().returned.empty());
  EXPECT_TRUE(End());
}

TEST_F(ConnectionTest, ADrainWithoutACoordinatorEndsAtOnce) {
  connection_->RequestDrain();
  EXPECT_TRUE(End());
}

TEST_F(ConnectionTest, ARefusalForGoodEndsTheSession) {
  Expect<wire::WorkerHello>();
  Send(wire::Refused{.failure = {.code = FailureCode::kVersionMismatch, .message = "too old"}});
  const Status ended = End();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().kind, ErrorKind::kInvalid);
  EXPECT_NE(ended.error().message.find("too old"), std::string::npos);
}

TEST_F(SilenceTest, ARefusalForNowIsTriedAgain) {
  Expect<wire::WorkerHello>();
  Send(wire::Refused{.failure = {.code = FailureCode::kBusy, .message = "later"},
                     .retry_after_ms = 1});
  Welcome();
  ExpectHeartbeat([](const auto&) { return true; });
}

TEST_F(ConnectionTest, WhatItDoesNotUnderstandIsSurvived) {
  Welcome();
  EXPECT_EQ(router_->Send(peer_, "this is no message"), wire::SendResult::kSent);
  ExpectHeartbeat([](const auto&) { return true; });
}

}  // namespace
}  // namespace loopfleet::worker
