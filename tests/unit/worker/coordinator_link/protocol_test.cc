#include "worker/coordinator_link/protocol.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "common/wire/codec/codec.h"

namespace loopfleet::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Holds the leases that the test lists.
class ListedRunner final : public LeaseRunner {
 public:
  bool Accept(wire::Lease lease) override {
    accepted.push_back(lease.lease);
    return true;
  }
  void Drop(std::span<const LeaseId> leases) override {
    for (const LeaseId lease : leases) {
      std::erase_if(held, [&](const wire::HeldLease& one) { return one.lease == lease; });
    }
  }
  std::vector<LeaseId> DropUnstarted() override { return GiveBack(unstarted); }
  std::vector<LeaseId> GiveBack(std::span<const LeaseId> leases) override {
    Drop(leases);
    return {leases.begin(), leases.end()};
  }
  std::vector<wire::Report> TakeFinished() override { return std::exchange(finished, {}); }
  std::vector<wire::HeldLease> Held() const override { return held; }
  std::vector<wire::CodeLookup> TakeCodeLookups() override { return std::exchange(lookups, {}); }
  void Answer(wire::CodeLookupAnswer answer) override { answers.push_back(std::move(answer)); }
  std::vector<BlobQuestion> TakeBlobQuestions() override {
    return std::exchange(blob_questions, {});
  }
  void AnswerBlob(const BlobAnswer& answer) override { blob_answers.push_back(answer); }
  std::vector<LeaseId> accepted;
  std::vector<wire::Report> finished;
  std::vector<wire::HeldLease> held;
  std::vector<LeaseId> unstarted;
  std::vector<wire::CodeLookup> lookups;
  std::vector<wire::CodeLookupAnswer> answers;
  std::vector<BlobQuestion> blob_questions;
  std::vector<BlobAnswer> blob_answers;
};

class RecordedLine final : public Protocol::Line {
 public:
  bool Send(const wire::WorkerMessage& message) override {
    sent.push_back(message);
    return true;
  }
  Status Reconnect() override {
    ++connections;
    return {};
  }
  std::vector<wire::WorkerMessage> sent;
  int connections = 0;
};

class ProtocolTest : public testing::Test {
 protected:
  ProtocolTest() {
    EXPECT_TRUE(protocol.Open(now));
    Step();
    Hear(wire::WorkerWelcome{.heartbeat_ms = 1000});
    Step();
    line.sent.clear();
  }

  void Hear(wire::WorkerCommand command) { EXPECT_TRUE(protocol.Hear(command, now)); }
  void Step() { EXPECT_TRUE(protocol.Step(now)); }
  void Welcome(std::vector<std::string> capabilities) {
    Hear(wire::WorkerWelcome{.heartbeat_ms = 1000, .capabilities = std::move(capabilities)});
    Step();
    line.sent.clear();
  }
  void Finish(std::uint64_t lease) {
    runner.finished.push_back(
        {.lease = {lease},
         .job = {.batch = {1}},
         .evaluation = {.verdict = Failure{.code = FailureCode::kRunCrash, .message = "it did"}}});
  }
  // The reports sent since the last call, message by message.
  std::vector<std::vector<wire::Report>> TakeReports() {
    std::vector<std::vector<wire::Report>> taken;
    for (const wire::WorkerMessage& message : std::exchange(line.sent, {})) {
      if (const auto* reports = std::get_if<wire::Reports>(&message)) {
        taken.push_back(reports->reports);
      }
    }
    return taken;
  }
  // Lets time pass, with an answer from the coordinator every second.
  void Pass(seconds time) {
    for (seconds passed{0}; passed < time; passed += seconds(1)) {
      now += seconds(1);
      Hear(wire::HeartbeatAnswer{});
      Step();
    }
  }

  Instant now{seconds(1000)};
  ListedRunner runner;
  RecordedLine line;
  Protocol protocol{{}, line, runner, {}};
};

// Found by the simulation (seed 22 of its first version): a report lost on a working connection was
// held forever, and its job never finished.
TEST_F(ProtocolTest, AnUnansweredReportIsSentAgainMoreAndMoreRarely) {
  Finish(1);
  Step();
  EXPECT_EQ(TakeReports().size(), 1U);
  Pass(seconds(4));
  EXPECT_TRUE(TakeReports().empty());
  Pass(seconds(1));
  ASSERT_EQ(TakeReports().size(), 1U);
  Pass(seconds(9));
  EXPECT_TRUE(TakeReports().empty());
  Pass(seconds(1));
  EXPECT_EQ(TakeReports().size(), 1U);
  Pass(seconds(600));
  const std::size_t in_ten_minutes = TakeReports().size();
  EXPECT_GE(in_ten_minutes, 10U);
  EXPECT_LE(in_ten_minutes, 12U);
  Hear(wire::ReportsStored{.leases = {{1}}});
  Pass(seconds(600));
  EXPECT_TRUE(TakeReports().empty());
}

TEST_F(ProtocolTest, ACodeLookupIsSentAtOnceAndItsAnswerHandedOn) {
  Hear(wire::WorkerWelcome{.heartbeat_ms = 1000,
                           .capabilities = {std::string(wire::kCodeLookupCapability)}});
  Step();
  line.sent.clear();
  runner.lookups = {{.lease = {1}, .code_hash = "ab"}};
  Step();
  ASSERT_EQ(line.sent.size(), 1U);
  EXPECT_EQ(std::get<wire::CodeLookup>(line.sent[0]).code_hash, "ab");
  EXPECT_TRUE(runner.answers.empty());
  Hear(wire::CodeLookupAnswer{.lease = {1}});
  EXPECT_EQ(runner.answers.size(), 1U);
}

TEST_F(ProtocolTest, ACoordinatorWithoutCodeLookupsIsNotAskedAndNothingWaits) {
  runner.lookups = {{.lease = {1}, .code_hash = "ab"}};
  Step();
  EXPECT_TRUE(line.sent.empty());
  ASSERT_EQ(runner.answers.size(), 1U);
  EXPECT_EQ(runner.answers[0].lease, LeaseId{1});
  EXPECT_FALSE(runner.answers[0].found);
}

TEST_F(ProtocolTest, AQuestionForABlobIsSentAndItsPieceHandedOn) {
  const std::string name(64, 'a');
  runner.blob_questions = {wire::BlobWanted{.sha256 = name, .offset = 5}};
  Step();
  EXPECT_TRUE(line.sent.empty()) << "this coordinator keeps no programs";
  ASSERT_EQ(runner.blob_answers.size(), 1U);
  EXPECT_EQ(runner.blob_answers[0], BlobAnswer(wire::BlobPiece{.sha256 = name}));
  Welcome({std::string(wire::kBlobCapability)});
  runner.blob_questions = {wire::BlobWanted{.sha256 = name, .offset = 5}};
  Step();
  ASSERT_EQ(line.sent.size(), 1U);
  EXPECT_EQ(std::get<wire::BlobWanted>(line.sent[0]).offset, 5U);
  const wire::BlobPiece piece{.sha256 = name, .total = 6, .offset = 5, .bytes = "x"};
  Hear(piece);
  ASSERT_EQ(runner.blob_answers.size(), 2U);
  EXPECT_EQ(runner.blob_answers[1], BlobAnswer(piece));
}

TEST_F(ProtocolTest, APieceForTheCoordinatorIsSentAndItsAnswerHandedOn) {
  const wire::BlobPiece piece{.sha256 = std::string(64, 'a'), .total = 1, .bytes = "x"};
  Welcome({std::string(wire::kBlobCapability)});
  runner.blob_questions = {piece};
  Step();
  EXPECT_TRUE(line.sent.empty()) << "this coordinator only sends blobs";
  ASSERT_EQ(runner.blob_answers.size(), 1U);
  EXPECT_EQ(std::get<wire::WorkerBlobHeld>(runner.blob_answers[0]).failure->code,
            FailureCode::kUnsupported);
  Welcome({std::string(wire::kPutBlobCapability)});
  runner.blob_questions = {piece};
  Step();
  ASSERT_EQ(line.sent.size(), 1U);
  EXPECT_EQ(std::get<wire::BlobPiece>(line.sent[0]), piece);
  const wire::WorkerBlobHeld held{.sha256 = piece.sha256, .bytes = 1};
  Hear(held);
  ASSERT_EQ(runner.blob_answers.size(), 2U);
  EXPECT_EQ(runner.blob_answers[1], BlobAnswer(held));
}

// A moment without authorized keys must not end a fleet.
TEST_F(ProtocolTest, ARevokedKeyDropsTheWorkAndGoesOnTrying) {
  runner.held = {{.lease = {1}, .job = {.batch = {1}}}, {.lease = {2}, .job = {.batch = {1}}}};
  Finish(3);
  Step();
  line.sent.clear();
  const auto revoked = [] {
    return wire::Refused{.failure = {.code = FailureCode::kUnauthenticated, .message = "revoked"}};
  };
  Hear(revoked());
  EXPECT_EQ(line.connections, 2) << "over a new connection, whose handshake says who it is";
  EXPECT_FALSE(protocol.is_registered());
  EXPECT_TRUE(runner.held.empty());
  Step();
  EXPECT_TRUE(line.sent.empty()) << "not at once, again and again";
  now += seconds(1);
  Step();
  ASSERT_EQ(line.sent.size(), 1U);
  EXPECT_TRUE(std::get<wire::WorkerHello>(line.sent[0]).held.empty());
  Hear(revoked());
  now += seconds(1);
  Step();
  EXPECT_EQ(line.sent.size(), 2U);
  Hear(wire::WorkerWelcome{.heartbeat_ms = 1000});
  EXPECT_TRUE(protocol.is_registered());
}

// Found by the simulation (seed 106 of its first version): a report that the coordinator cannot
// read was sent again forever, and its job never finished.
TEST_F(ProtocolTest, AReportThatCannotBeReadIsSingledOutAndBecomesAFailure) {
  for (const std::uint64_t lease : {1, 2, 3}) Finish(lease);
  Step();
  ASSERT_EQ(TakeReports().size(), 1U);
  Hear(wire::Refused{.failure = {.code = FailureCode::kMalformed, .message = "row 1: no"}});
  EXPECT_TRUE(protocol.is_registered());

  Step();  // one by one, each after the answer to the one before
  auto sent = TakeReports();
  ASSERT_EQ(sent.size(), 1U);
  ASSERT_EQ(sent[0].size(), 1U);
  EXPECT_EQ(sent[0][0].lease, LeaseId{1});
  Step();
  EXPECT_TRUE(TakeReports().empty());
  Hear(wire::ReportsStored{.leases = {{1}}});

  Step();  // the one to blame
  sent = TakeReports();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].at(0).lease, LeaseId{2});
  EXPECT_EQ(sent[0].at(0).evaluation.failure().code, FailureCode::kRunCrash);
  Hear(wire::Refused{.failure = {.code = FailureCode::kMalformed, .message = "row 0: no"}});
  Step();
  sent = TakeReports();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].at(0).lease, LeaseId{2});
  EXPECT_EQ(sent[0].at(0).evaluation.failure().code, FailureCode::kWorkerCrashed);
  EXPECT_NE(sent[0].at(0).evaluation.failure().message.find("row 0: no"), std::string::npos);
  Hear(wire::ReportsStored{.leases = {{2}}});

  Step();
  EXPECT_EQ(TakeReports().at(0).at(0).lease, LeaseId{3});
  Hear(wire::ReportsStored{.leases = {{3}}});
  Step();
  Finish(4);  // and then together again
  Finish(5);
  Step();
  EXPECT_EQ(TakeReports().at(0).size(), 2U);
}

TEST_F(ProtocolTest, AReportThatCannotBeReadAsAFailureEitherIsLetGo) {
  Finish(1);
  Step();
  for (int i = 0; i < 3; ++i) {
    Hear(wire::Refused{.failure = {.code = FailureCode::kMalformed, .message = "no"}});
    Step();
  }
  TakeReports();
  Pass(seconds(600));
  EXPECT_TRUE(TakeReports().empty());
}

TEST_F(ProtocolTest, AJobThatCannotBeReadIsRefusedUntilTheCoordinatorKnows) {
  const wire::UnreadableLease lease{
      .lease = {8},
      .job = {.batch = {4}, .index = 1},
      .failure = {.code = FailureCode::kUnsupported, .message = "action 0 is new"}};
  Hear(wire::Leases{.unreadable = {lease}});
  Step();
  const auto reports = TakeReports();
  ASSERT_EQ(reports.size(), 1U);
  ASSERT_EQ(reports[0].size(), 1U);
  EXPECT_EQ(reports[0][0].lease, LeaseId{8});
  EXPECT_EQ(reports[0][0].job, lease.job);
  const Failure& failure = reports[0][0].evaluation.failure();
  EXPECT_EQ(failure.code, FailureCode::kVersionMismatch);
  EXPECT_TRUE(failure.message.ends_with("cannot read the job: action 0 is new")) << failure.message;
  Pass(seconds(5));
  EXPECT_EQ(TakeReports().size(), 1U);  // sent again
  Hear(wire::ReportsStored{.leases = {{8}}});
  Pass(seconds(60));
  EXPECT_TRUE(TakeReports().empty());
}

TEST_F(ProtocolTest, WhileItDrainsAJobThatCannotBeReadIsReturnedUnrun) {
  protocol.StartDrain(now);
  Hear(wire::Leases{.unreadable = {{.lease = {8}, .job = {.batch = {4}}}}});
  Step();
  EXPECT_TRUE(std::ranges::any_of(line.sent, [](const wire::WorkerMessage& message) {
    const auto* goodbye = std::get_if<wire::Goodbye>(&message);
    return goodbye != nullptr && goodbye->returned == std::vector<LeaseId>{{8}};
  }));
}

// A heartbeat without them would make each a lost attempt, and a return before the heartbeat would
// bring them back here.
TEST_F(ProtocolTest, ADrainTellsOfItselfAndThenReturnsWhatItHasNotBegun) {
  runner.held = {{.lease = {4}, .job = {.batch = {1}}},
                 {.lease = {5}, .job = {.batch = {2}}},
                 {.lease = {6}, .job = {.batch = {3}}}};
  runner.unstarted = {{5}, {6}};
  protocol.StartDrain(now);
  Step();
  ASSERT_EQ(line.sent.size(), 2U);
  const auto& heartbeat = std::get<wire::Heartbeat>(line.sent[0]);
  EXPECT_EQ(heartbeat.drain, wire::DrainState::kDraining);
  EXPECT_EQ(heartbeat.held, (std::vector<LeaseId>{{4}, {5}, {6}}));
  EXPECT_EQ(std::get<wire::Returned>(line.sent[1]).leases, (std::vector<LeaseId>{{5}, {6}}));
  line.sent.clear();
  Hear(wire::Leases{.leases = {{.lease = {7}, .job = {.batch = {4}}}}});  // crossed the heartbeat
  Step();
  ASSERT_EQ(line.sent.size(), 1U);
  // It has not revoked the others yet, so they are named again.
  EXPECT_EQ(std::get<wire::Returned>(line.sent[0]).leases, (std::vector<LeaseId>{{5}, {6}, {7}}));
  line.sent.clear();
  Hear(wire::Revoke{.leases = {{5}, {6}, {7}}});  // they were listed, and it has taken them back
  Pass(seconds(1));
  ASSERT_EQ(line.sent.size(), 1U);
  EXPECT_EQ(std::get<wire::Heartbeat>(line.sent[0]).held, std::vector<LeaseId>{{4}});
}

// Otherwise each of them would be a lost attempt.
TEST_F(ProtocolTest, WhatIsReturnedWhenTheConnectionBreaksIsReturnedAgain) {
  runner.held = {{.lease = {4}, .job = {.batch = {1}}},
                 {.lease = {5}, .job = {.batch = {2}}},
                 {.lease = {6}, .job = {.batch = {3}}}};
  const std::vector<wire::HeldLease> held = runner.held;
  runner.unstarted = {{5}, {6}};
  protocol.StartDrain(now);
  Step();
  ASSERT_EQ(line.sent.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<wire::Returned>(line.sent[1]));
  line.sent.clear();
  protocol.ConnectedAgain(now);
  Step();
  ASSERT_EQ(line.sent.size(), 1U);
  EXPECT_EQ(std::get<wire::WorkerHello>(line.sent[0]).held, held);
  line.sent.clear();
  Hear(wire::WorkerWelcome{.heartbeat_ms = 1000});
  Step();
  ASSERT_EQ(line.sent.size(), 2U);
  EXPECT_EQ(std::get<wire::Returned>(line.sent[1]).leases, (std::vector<LeaseId>{{5}, {6}}));
  line.sent.clear();
  Pass(seconds(1));  // the message may have been lost
  ASSERT_EQ(line.sent.size(), 2U);
  EXPECT_EQ(std::get<wire::Heartbeat>(line.sent[0]).held, (std::vector<LeaseId>{{4}, {5}, {6}}));
  EXPECT_EQ(std::get<wire::Returned>(line.sent[1]).leases, (std::vector<LeaseId>{{5}, {6}}));
  line.sent.clear();
  runner.held.clear();  // the last one ends, and its report is not wanted
  Step();
  ASSERT_EQ(line.sent.size(), 1U);
  EXPECT_EQ(std::get<wire::Goodbye>(line.sent[0]).returned, (std::vector<LeaseId>{{5}, {6}}));
}

TEST_F(ProtocolTest, ADrainWithoutAConnectionReturnsWhatItHasNotBegunOnceItIsWelcome) {
  runner.held = {{.lease = {4}, .job = {.batch = {1}}}, {.lease = {5}, .job = {.batch = {2}}}};
  runner.unstarted = {{5}};
  protocol.ConnectedAgain(now);
  protocol.StartDrain(now);
  Step();
  ASSERT_EQ(line.sent.size(), 1U);
  EXPECT_EQ(std::get<wire::WorkerHello>(line.sent[0]).held,
            (std::vector<wire::HeldLease>{{.lease = {4}, .job = {.batch = {1}}},
                                          {.lease = {5}, .job = {.batch = {2}}}}));
  line.sent.clear();
  Hear(wire::WorkerWelcome{.heartbeat_ms = 1000});
  Step();
  ASSERT_EQ(line.sent.size(), 2U);
  EXPECT_EQ(std::get<wire::Returned>(line.sent[1]).leases, std::vector<LeaseId>{{5}});
}

// The answer to a heartbeat would be unread when the connection closes, and reset it.
TEST_F(ProtocolTest, ADrainOfWhatHasNotBegunIsOnlyAGoodbye) {
  runner.held = {{.lease = {5}, .job = {.batch = {2}}}};
  runner.unstarted = {{5}};
  protocol.StartDrain(now);
  Step();
  ASSERT_EQ(line.sent.size(), 1U);
  EXPECT_EQ(std::get<wire::Goodbye>(line.sent[0]).returned, std::vector<LeaseId>{{5}});
}

TEST_F(ProtocolTest, SaysGoodbyeAlsoBeforeItsHelloIsAnswered) {
  protocol.ConnectedAgain(now);
  Step();  // says hello
  line.sent.clear();
  protocol.StartDrain(now);
  Step();
  ASSERT_FALSE(line.sent.empty());
  EXPECT_TRUE(std::holds_alternative<wire::Goodbye>(line.sent.back()));
}

TEST_F(ProtocolTest, ReportsLingerWhileMoreAreToComeAndNoLonger) {
  runner.held = {{.lease = {9}, .job = {.batch = {1}}}};  // under way
  Finish(1);
  Step();
  EXPECT_TRUE(TakeReports().empty());
  EXPECT_LE(protocol.NextTimer(), now + milliseconds(2));
  now += milliseconds(1);
  Finish(2);
  Step();
  EXPECT_TRUE(TakeReports().empty());
  now += milliseconds(1);
  Step();
  const auto sent = TakeReports();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].size(), 2U);
}

TEST_F(ProtocolTest, TheLastReportDoesNotLinger) {
  Finish(1);
  Step();
  EXPECT_EQ(TakeReports().size(), 1U);
}

TEST_F(ProtocolTest, AConnectionThatIsThereAgainIsGreetedAtOnceAndOnce) {
  runner.held = {{.lease = {1}, .job = {.batch = {1}}}};
  protocol.ConnectedAgain(now);
  EXPECT_LE(protocol.NextTimer(), now);
  Step();
  ASSERT_EQ(line.sent.size(), 1U);
  EXPECT_EQ(std::get<wire::WorkerHello>(line.sent[0]).held, runner.held);
  Hear(wire::HelloWanted{});  // the answer to a heartbeat that was queued before it
  Step();
  EXPECT_EQ(line.sent.size(), 1U);
  Hear(wire::WorkerWelcome{.heartbeat_ms = 1000});
  Hear(wire::HelloWanted{});
  line.sent.clear();
  Step();
  ASSERT_EQ(line.sent.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<wire::WorkerHello>(line.sent[0]));
}

// Otherwise the worker would drop its new connection because of the silence before it.
TEST_F(ProtocolTest, TheSilenceBeforeAConnectionDoesNotCount) {
  now += seconds(20);
  protocol.ConnectedAgain(now);
  Step();
  EXPECT_EQ(line.connections, 1);
}

TEST_F(ProtocolTest, AFullMessageDoesNotLinger) {
  runner.held = {{.lease = {900}, .job = {.batch = {1}}}};
  for (std::uint64_t lease = 1; lease <= 64; ++lease) Finish(lease);
  Step();
  EXPECT_EQ(TakeReports().size(), 1U);
}

// The coordinator reads no message that lists more, so it would never welcome the worker again.
TEST_F(ProtocolTest, ItHoldsNoMoreLeasesThanAMessageCanList) {
  for (std::uint64_t lease = 0; lease < 4'200;) {
    wire::Leases granted;
    while (granted.leases.size() < 60) {
      granted.leases.push_back({.lease = {++lease}, .job = {.batch = {1}}});
    }
    Hear(std::move(granted));
    for (const LeaseId accepted : std::exchange(runner.accepted, {})) Finish(accepted.value);
    Step();  // nothing is acknowledged
  }
  now += seconds(1);
  line.sent.clear();
  Step();
  const auto heartbeat = std::ranges::find_if(line.sent, [](const wire::WorkerMessage& message) {
    return std::holds_alternative<wire::Heartbeat>(message);
  });
  ASSERT_NE(heartbeat, line.sent.end());
  EXPECT_EQ(std::get<wire::Heartbeat>(*heartbeat).held.size(), wire::kMaxLeasesPerMessage);
  EXPECT_TRUE(wire::DecodeWorkerMessage(wire::Encode(*heartbeat)));
  protocol.ConnectedAgain(now);
  line.sent.clear();
  Step();
  ASSERT_EQ(line.sent.size(), 1U);
  EXPECT_EQ(std::get<wire::WorkerHello>(line.sent[0]).held.size(), wire::kMaxLeasesPerMessage);
}

TEST_F(ProtocolTest, WhatItGivesBackItSays) {
  runner.held = {{.lease = {4}, .job = {.batch = {1}}}, {.lease = {5}, .job = {.batch = {2}}}};
  Hear(wire::GiveBack{.leases = {{4}, {5}}});
  Step();
  ASSERT_EQ(line.sent.size(), 1U);
  EXPECT_EQ(std::get<wire::Returned>(line.sent[0]).leases, (std::vector<LeaseId>{{4}, {5}}));
  line.sent.clear();
  Step();
  EXPECT_TRUE(line.sent.empty());
}

TEST_F(ProtocolTest, AJobThatWasLostBeforeIsAnnouncedAtOnce) {
  Step();
  line.sent.clear();
  Hear(wire::Leases{.leases = {{.lease = {7}, .job = {.batch = {1}}}}});
  Step();
  EXPECT_TRUE(line.sent.empty());
  Hear(wire::Leases{.leases = {{.lease = {8}, .job = {.batch = {1}}, .attempt = 2}}});
  Step();
  ASSERT_EQ(line.sent.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<wire::Heartbeat>(line.sent[0]));
}

}  // namespace
}  // namespace loopfleet::worker
