// Permissions, quotas of a client, and what happens when a key is revoked.

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <variant>

#include "coordinator/core/rules/permission.h"
#include "tests/unit/coordinator/core/core_harness.h"

namespace loopfleet::coordinator {
namespace {

using wire::Role;

// ---- the table of requests

TEST(Permission, WhatEachRequestNeeds) {
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::ClientHello{})), Need::kClient);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::SubmitJobs{})), Need::kClient);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::FetchOutcomes{})), Need::kClient);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::CancelBatch{})), Need::kOwnership);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::ListBatches{})), Need::kClient);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::ShowBatch{})), Need::kClient);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::ShowJob{})), Need::kClient);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::ListWorkers{})), Need::kClient);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::ExplainJob{})), Need::kClient);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::SetDrain{})), Need::kAdmin);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::ListOutcomes{})), Need::kClient);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::ShowFleet{})), Need::kClient);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::FlagResults{})), Need::kAdmin);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::UnknownMember{})), Need::kClient);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::FindBest{})), Need::kClient);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::BlobPiece{})), Need::kClient);
  EXPECT_EQ(NeedOf(wire::ClientMessage(wire::BlobWanted{})), Need::kClient);
  static_assert(std::variant_size_v<wire::ClientMessage> == 17, "one line for each request");
  struct RequestThatNobodyThoughtOf {};
  EXPECT_EQ(kNeedOf<RequestThatNobodyThoughtOf>, Need::kAdmin);
}

TEST(Permission, WhoHasIt) {
  using enum Need;
  for (const Ownership ownership : {Ownership::kOwn, Ownership::kAnothers}) {
    for (const Need need : {kClient, kOwnership, kAdmin}) {
      EXPECT_TRUE(IsPermitted(Role::kAdmin, need, ownership));
      EXPECT_FALSE(IsPermitted(Role::kWorker, need, ownership));
      EXPECT_FALSE(IsPermitted(Role::kCoordinator, need, ownership));
    }
    EXPECT_TRUE(IsPermitted(Role::kClient, kClient, ownership));
    EXPECT_FALSE(IsPermitted(Role::kClient, kAdmin, ownership));
  }
  EXPECT_TRUE(IsPermitted(Role::kClient, kOwnership, Ownership::kOwn));
  EXPECT_FALSE(IsPermitted(Role::kClient, kOwnership, Ownership::kAnothers));
}

// ---- in the core

// "a" and "b" are clients with keys, "root" is an admin; "a" has a batch of three jobs.
struct TwoClients : Harness {
  explicit TwoClients(Limits given = {}) : Harness(given) {
    Hello("a", 1, Role::kClient);
    Hello("b", 2, Role::kClient);
    Hello("root", 3, Role::kAdmin);
    const auto submitted = Submit("a", {{.tree = 1}, {.tree = 2}, {.tree = 3}});
    Write();
    batch = MustAccept("a", submitted).batch;
  }
  void Hello(const PeerId& peer, std::uint8_t client, Role role) {
    keys[peer] = "key of " + peer;
    AskAs(peer, role, wire::ClientHello{.client = Named(client)});
  }
  std::uint64_t AskAs(const PeerId& peer, Role role, ClientQuestion question) {
    Give(ClientAsked{.peer = peer,
                     .number = ++number,
                     .question = std::move(question),
                     .role = role,
                     .key = "key of " + peer});
    return number;
  }
  FailureCode RefusalOf(const PeerId& peer, std::uint64_t request) {
    const auto refused = TakeReply<wire::Refused>(peer, request);
    EXPECT_TRUE(refused.has_value());
    return refused ? refused->failure.code : FailureCode::kUnsupported;
  }
  std::uint64_t number = 10'000;
  BatchId batch;
};

TEST(CoreSecurity, OnlyItsOwnerOrAnAdminCancelsABatch) {
  TwoClients h;
  const auto by_another = h.AskAs("b", Role::kClient, wire::CancelBatch{h.batch});
  EXPECT_EQ(h.RefusalOf("b", by_another), FailureCode::kForbidden);
  h.Write();
  EXPECT_TRUE(h.disk.outcomes.empty()) << "nothing of a refused request is acted upon";

  h.AskAs("a", Role::kClient, wire::CancelBatch{h.batch});
  h.Write();
  EXPECT_EQ(h.disk.outcomes.size(), 3u);

  TwoClients other;
  other.AskAs("root", Role::kAdmin, wire::CancelBatch{other.batch});
  other.Write();
  EXPECT_EQ(other.disk.outcomes.size(), 3u);
}

// Another connection with the same key is the same client: the shell gives both one id.
TEST(CoreSecurity, ASecondConnectionOfTheOwnerIsTheOwner) {
  TwoClients h;
  h.Hello("a2", 1, Role::kClient);
  h.AskAs("a2", Role::kClient, wire::CancelBatch{h.batch});
  h.Write();
  EXPECT_EQ(h.disk.outcomes.size(), 3u);
}

TEST(CoreSecurity, AClientThatSaidNoHelloOwnsNothing) {
  TwoClients h;
  const auto request = h.AskAs("c", Role::kClient, wire::CancelBatch{h.batch});
  EXPECT_EQ(h.RefusalOf("c", request), FailureCode::kUnauthenticated);
  h.Write();
  EXPECT_TRUE(h.disk.outcomes.empty());
}

// A peer chooses its routing id: a connection named "a" with b's key is not client a.
TEST(CoreSecurity, ARoutingIdIdentifiesNobody) {
  TwoClients h;
  h.keys["a"] = "key of b";
  const auto submitted = h.Submit("a", {{.tree = 4}});
  EXPECT_EQ(h.RefusalOf("a", submitted), FailureCode::kUnauthenticated);
  h.Give(ClientAsked{.peer = "a",
                     .number = 77,
                     .question = wire::CancelBatch{h.batch},
                     .role = Role::kClient,
                     .key = "key of b"});
  EXPECT_EQ(h.RefusalOf("a", 77), FailureCode::kUnauthenticated);
  h.Write();
  EXPECT_TRUE(h.disk.outcomes.empty());
  EXPECT_EQ(h.disk.jobs.size(), 3u);
}

TEST(CoreSecurity, ARoutingIdMakesNoWorker) {
  TwoClients h;
  h.keys["w"] = "key of w";
  h.WorkerHello("w", 50);
  const wire::Lease lease = h.TakeLeases("w").at(0);
  h.keys["w"] = "key of another";
  h.Report("w", lease);
  EXPECT_TRUE(h.TakeCommand<wire::HelloWanted>("w"));
  h.Say("w", wire::Goodbye{});
  h.Write();
  EXPECT_TRUE(h.disk.outcomes.empty());
  EXPECT_EQ(h.core->Leased(), 1u);
}

TEST(CoreSecurity, OneKeyDoesNotTakeThePlaceOfAllWorkers) {
  Limits limits;
  limits.max_workers_per_key = 1;
  Harness h(limits);
  h.keys = {{"w", "key"}, {"x", "key"}, {"y", "another"}};
  h.WorkerHello("w", 50);
  h.WorkerHello("x", 51);
  EXPECT_EQ(h.TakeCommand<wire::Refused>("x")->failure.code, FailureCode::kBusy);
  h.WorkerHello("w", 50);  // already known
  h.WorkerHello("y", 52);
  EXPECT_EQ(h.core->state().workers.size(), 2u);
}

TEST(CoreSecurity, AFullKeyTakesThePlaceOfItsOwnLostWorkersOnly) {
  Limits limits;
  limits.max_workers_per_key = 2;
  Harness h(limits);
  h.keys = {{"u", "another"}, {"v", "key"}, {"w", "key"}, {"x", "key"}};
  h.WorkerHello("u", 50);
  h.WorkerHello("v", 51);
  h.Say("v", wire::Heartbeat{.canary = wire::CanaryState::kDrifting});
  h.Pass(seconds(1));
  h.WorkerHello("w", 52);
  h.Pass(seconds(5));
  ASSERT_EQ(h.Workers(wire::WorkerState::kLost), 3u);
  h.WorkerHello("x", 53);
  const WorkerRegistry& workers = h.core->state().workers;
  EXPECT_NE(workers.Find(Named(50)), nullptr);
  EXPECT_NE(workers.Find(Named(51)), nullptr);  // in quarantine
  EXPECT_EQ(workers.Find(Named(52)), nullptr);
  EXPECT_NE(workers.Find(Named(53)), nullptr);
}

wire::WorkerHello OfKind(std::uint8_t worker, std::string hardware_class) {
  wire::WorkerHello hello{.worker = Named(worker), .name = "w", .credit = 1};
  hello.hardware.hardware_class = std::move(hardware_class);
  return hello;
}

// The number of kinds is limited because the store is searched once per kind that could run a job.
TEST(CoreSecurity, AKeyHasWorkersOfSoManyKindsAndNoMore) {
  Limits limits;
  limits.max_kinds_per_key = 2;
  Harness h(limits);
  h.keys = {{"a", "key"}, {"b", "key"}, {"c", "key"}, {"d", "key"}, {"e", "another"}};
  h.Say("a", OfKind(1, "class 1"));
  h.Say("b", OfKind(2, "class 2"));
  h.Say("c", OfKind(3, "class 3"));
  const auto refused = h.TakeCommand<wire::Refused>("c");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->failure.code, FailureCode::kQuotaExceeded);
  EXPECT_NE(refused->failure.message.find("2 kinds"), std::string::npos);
  EXPECT_GT(refused->retry_after_ms, 0U);
  h.Say("d", OfKind(4, "class 2"));  // a known kind
  h.Say("a", OfKind(1, "class 3"));  // the only worker of its kind changes it
  h.Say("e", OfKind(5, "class 4"));
  EXPECT_EQ(h.core->state().workers.size(), 4u);
  EXPECT_EQ(h.core->state().workers.KindsFor({}).size(), 3u);
}

TEST(CoreSecurity, EveryClientMayReadABatch) {
  TwoClients h;
  const auto shown = h.AskAs("b", Role::kClient, wire::ShowBatch{h.batch});
  ASSERT_EQ(h.from_storage.size(), 1u);
  EXPECT_EQ(h.from_storage.front().number, shown);
  const auto fetched = h.AskAs("b", Role::kClient, wire::FetchOutcomes{.batch = h.batch});
  EXPECT_TRUE(h.TakePage("b", fetched));
  h.AskAs("b", Role::kClient, wire::ShowJob{MakeJobId(h.batch.value, 0)});
  EXPECT_EQ(h.shown_jobs.size(), 1u);
}

TEST(CoreSecurity, NobodyAddsToAnothersBatch) {
  Harness h;
  h.ClientHello("a", 1);
  h.ClientHello("b", 2);
  const auto opened = h.Submit("a", {{}}, {.request = 1, .end = wire::BatchEnd::kMoreFollows});
  h.Write();
  const BatchId batch = h.MustAccept("a", opened).batch;
  const auto added = h.Submit("b", {{}}, {.request = 2, .append_to = batch});
  const auto refused = h.TakeReply<wire::Refused>("b", added);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->failure.code, FailureCode::kNotFound);
}

// ---- quotas

Limits Small() {
  Limits limits;
  limits.max_unfinished_jobs_per_client = 5;
  limits.max_unfinished_batches_per_client = 3;
  return limits;
}

TEST(CoreQuota, JobsOfOneClient) {
  TwoClients h(Small());  // "a" has three
  const auto over = h.Submit("a", {{.tree = 4}, {.tree = 5}, {.tree = 6}});
  const auto refused = h.TakeReply<wire::Refused>("a", over);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->failure.code, FailureCode::kQuotaExceeded);
  EXPECT_GT(refused->retry_after_ms, 0u);
  EXPECT_NE(refused->failure.message.find("limit 5"), std::string::npos)
      << refused->failure.message;
  // Other clients have their own quota, and two jobs still fit.
  for (const char* client : {"a", "b"}) {
    const auto fits = h.Submit(client, {{.tree = 4}, {.tree = 5}});
    h.Write();
    h.MustAccept(client, fits);
  }
  // Finished jobs free quota.
  h.AskAs("a", Role::kClient, wire::CancelBatch{h.batch});
  h.Write();
  const auto again = h.Submit("a", {{.tree = 7}, {.tree = 8}, {.tree = 9}});
  h.Write();
  h.MustAccept("a", again);
}

TEST(CoreQuota, IsAskedBeforeAnybodyLooksAtTheJobs) {
  TwoClients h(Small());  // "a" has three
  const auto why = [&](const char* client, std::size_t jobs) {
    const wire::SubmitJobs submit{.jobs = std::vector<JobSpec>(jobs)};
    return h.core->CheckRoomFor(*h.core->ClientOf(client, h.keys[client]), submit, h.now.instant);
  };
  EXPECT_FALSE(why("a", 2));
  EXPECT_FALSE(why("b", 3));
  auto over = why("a", 3);
  ASSERT_TRUE(over.has_value());
  EXPECT_EQ(over->code, FailureCode::kQuotaExceeded);
  // The jobs were not decoded, so the event has none; it is refused all the same.
  const std::uint64_t number = 9'000;
  h.Give(Submission{.peer = "a",
                    .key = h.keys["a"],
                    .number = number,
                    .request_id = Uuid{.bytes = {9}},
                    .digest = "9",
                    .no_room = over});
  const auto refused = h.TakeReply<wire::Refused>("a", number);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->failure.code, FailureCode::kQuotaExceeded);
  EXPECT_EQ(refused->failure.message, over->message);
  EXPECT_FALSE(h.core->HasWritesUnderWay());
}

TEST(CoreQuota, NobodyLooksAtJobsThatAreNotTakenAnyway) {
  Limits limits;
  limits.max_requests_per_second_per_client = 4;
  TwoClients h(limits);
  const auto why = [&](const char* client, std::optional<BatchId> append_to) {
    const wire::SubmitJobs submit{.append_to = append_to, .jobs = std::vector<JobSpec>(1)};
    return h.core->CheckRoomFor(*h.core->ClientOf(client, h.keys[client]), submit, h.now.instant);
  };
  const auto opened =
      h.Submit("b", {{.tree = 4}}, {.request = 9, .end = wire::BatchEnd::kMoreFollows});
  h.Write();
  const BatchId open = h.MustAccept("b", opened).batch;
  h.Pass(seconds(2));
  EXPECT_FALSE(why("b", open));
  ASSERT_TRUE(why("a", open));
  EXPECT_EQ(why("a", open)->code, FailureCode::kNotFound);
  EXPECT_EQ(why("b", BatchId{99})->code, FailureCode::kNotFound);
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(why("b", open)) << i;  // a check uses no quota
    h.Ask("b", wire::ShowBatch{.batch = open});
  }
  ASSERT_TRUE(why("b", open));
  EXPECT_EQ(why("b", open)->code, FailureCode::kQuotaExceeded);
  EXPECT_FALSE(why("a", {}));
  h.Give(DrainRequested{});
  ASSERT_TRUE(why("a", {}));
  EXPECT_EQ(why("a", {})->code, FailureCode::kShuttingDown);
}

TEST(CoreQuota, JobsOnTheirWayToDiskCount) {
  TwoClients h(Small());
  h.Submit("a", {{.tree = 4}, {.tree = 5}});  // not yet written
  const auto over = h.Submit("a", {{.tree = 6}});
  EXPECT_EQ(h.TakeReply<wire::Refused>("a", over)->failure.code, FailureCode::kQuotaExceeded);
  h.RefuseWrites(FailureCode::kStorageFull);  // their submission is refused after all
  const auto fits = h.Submit("a", {{.tree = 7}, {.tree = 8}});
  h.Write();
  h.MustAccept("a", fits);
}

TEST(CoreQuota, BatchesOfOneClient) {
  TwoClients h(Small());
  for (const std::uint8_t tree : {4, 5}) {
    const auto fits = h.Submit("a", {{.tree = tree}});
    h.Write();
    h.MustAccept("a", fits);
  }
  const auto over = h.Submit("a", {});
  const auto refused = h.TakeReply<wire::Refused>("a", over);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->failure.code, FailureCode::kQuotaExceeded);
}

TEST(CoreQuota, BytesOfOneClient) {
  Limits limits;
  limits.max_unfinished_bytes_per_client = 4 * MemoryBytesOf(JobSpec{}) - 1;
  Harness h(limits);
  h.ClientHello("a", 1);
  const auto over = h.Submit("a", {{.tree = 1}, {.tree = 2}, {.tree = 3}, {.tree = 4}});
  const auto refused = h.TakeReply<wire::Refused>("a", over);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->failure.code, FailureCode::kQuotaExceeded);
  EXPECT_NE(refused->failure.message.find("bytes"), std::string::npos);
}

TEST(CoreQuota, RepeatsOfWhatWasAcceptedAreAnsweredAtTheLimit) {
  Limits limits;
  limits.max_unfinished_jobs_per_client = 1;
  Harness h(limits);
  h.ClientHello("a", 1);
  h.Submit("a", {{.tree = 1}}, {.request = 1});
  h.Write();
  const auto again = h.Submit("a", {{.tree = 1}}, {.request = 1});
  h.MustAccept("a", again);
}

TEST(CoreQuota, AfterARestartTheLoadIsWhatWasUnfinished) {
  TwoClients h(Small());
  h.Restart();
  h.Hello("a", 1, Role::kClient);
  const auto over = h.Submit("a", {{.tree = 4}, {.tree = 5}, {.tree = 6}});
  EXPECT_EQ(h.TakeReply<wire::Refused>("a", over)->failure.code, FailureCode::kQuotaExceeded);
}

TEST(CoreQuota, RequestsPerSecond) {
  Limits limits;
  limits.max_requests_per_second_per_client = 10;
  Harness h(limits);
  h.ClientHello("a", 1);
  h.ClientHello("b", 2);
  int answered = 0;
  std::uint32_t retry_after_ms = 0;
  for (int i = 0; i < 100; ++i) {
    const auto number = h.Ask("a", wire::ListWorkers{});
    if (h.TakeReply<wire::WorkerList>("a", number)) {
      ++answered;
    } else {
      const auto refused = h.TakeReply<wire::Refused>("a", number);
      ASSERT_TRUE(refused.has_value());
      EXPECT_EQ(refused->failure.code, FailureCode::kQuotaExceeded);
      retry_after_ms = refused->retry_after_ms;
    }
  }
  EXPECT_EQ(answered, 10) << "what a second allows, at once";
  EXPECT_GE(retry_after_ms, 100u);
  EXPECT_LE(retry_after_ms, 201u);
  const auto others = h.Ask("b", wire::ListWorkers{});
  EXPECT_TRUE(h.TakeReply<wire::WorkerList>("b", others).has_value());
  // There is no further penalty: after the stated time the request is answered.
  h.Pass(milliseconds(retry_after_ms));
  const auto later = h.Ask("a", wire::ListWorkers{});
  EXPECT_TRUE(h.TakeReply<wire::WorkerList>("a", later).has_value());
}

TEST(CoreQuota, IdleClientsAreForgotten) {
  Harness h;
  h.ClientHello("a", 1);
  h.Ask("a", wire::ListWorkers{});
  EXPECT_GT(h.core->state().usage.size(), 0u);
  h.Pass(seconds(3));
  EXPECT_EQ(h.core->state().usage.size(), 0u);
}

TEST(CoreQuota, ConnectionsOfOneClient) {
  Limits limits;
  limits.max_connections_per_client = 2;
  Harness h(limits);
  h.ClientHello("b", 2);
  for (const char* peer : {"a1", "a2", "a3"}) {
    h.ClientHello(peer, 1);
    h.Pass(milliseconds(100));
  }
  EXPECT_FALSE(h.core->ClientOf("a1").has_value()) << "its longest silent one";
  EXPECT_TRUE(h.core->ClientOf("a2").has_value());
  EXPECT_TRUE(h.core->ClientOf("a3").has_value());
  EXPECT_TRUE(h.core->ClientOf("b").has_value());
}

// ---- revoked keys

TEST(CoreRevocation, AClientIsAStrangerAndIsToldNothingMore) {
  TwoClients h;
  const auto waiting =
      h.AskAs("a", Role::kClient, wire::FetchOutcomes{.batch = h.batch, .wait_ms = 10'000});
  h.Give(KeysRevoked{{"key of a"}});
  EXPECT_FALSE(h.core->ClientOf("a", "key of a").has_value());
  EXPECT_TRUE(h.core->ClientOf("b", "key of b").has_value());
  h.AskAs("root", Role::kAdmin, wire::CancelBatch{h.batch});
  h.Write();
  EXPECT_FALSE(h.TakePage("a", waiting)) << "the outcomes are not for it any more";
  h.Pass(seconds(20));
  EXPECT_FALSE(h.TakePage("a", waiting));
}

// A peer may wait for a public batch without a hello.
TEST(CoreRevocation, AStrangerThatWaitsIsToldNothingMore) {
  TwoClients h;
  const auto waiting =
      h.AskAs("a9", Role::kClient, wire::FetchOutcomes{.batch = h.batch, .wait_ms = 10'000});
  h.Give(KeysRevoked{{"key of a9"}});
  h.AskAs("root", Role::kAdmin, wire::CancelBatch{h.batch});
  h.Write();
  h.Pass(seconds(20));
  EXPECT_FALSE(h.TakePage("a9", waiting));
}

TEST(CoreRevocation, WhatWasUnderWayIsAnsweredToNobody) {
  TwoClients h;
  h.Submit("a", {{.tree = 9}});
  h.AskAs("a", Role::kClient, wire::CancelBatch{h.batch});
  h.Give(KeysRevoked{{"key of a"}});
  h.replies.clear();
  h.from_storage.clear();
  h.Write();
  for (const ReplyToClient& reply : h.replies) EXPECT_NE(reply.peer, "a");
  for (const AnswerFromStorage& answer : h.from_storage) EXPECT_NE(answer.peer, "a");
  EXPECT_EQ(h.disk.jobs.size(), 4u) << "it is accepted all the same";
}

TEST(CoreRevocation, BatchesAreGoneThroughOnceForAllConnections) {
  const auto cost = [](int connections) {
    Harness h;
    h.keys["other"] = "key of other";
    h.ClientHello("other", 1);
    for (int batch = 0; batch < 10; ++batch) h.Submit("other", {{.tree = 1}});
    for (int i = 0; i < connections; ++i) {
      const PeerId peer = "a" + std::to_string(i);
      h.keys[peer] = "key of a";
      h.ClientHello(peer, 2);
    }
    const std::uint64_t before = h.core->rows_seen();
    h.Give(KeysRevoked{{"key of a"}});
    return h.core->rows_seen() - before;
  };
  EXPECT_EQ(cost(20), cost(1));
}

// Its jobs were accepted (I1) and stay; an admin can cancel them.
TEST(CoreRevocation, AcceptedJobsOfARevokedClientStillRun) {
  TwoClients h;
  h.Give(KeysRevoked{{"key of a"}});
  h.WorkerHello("w", 50, {.credit = 3});
  const auto leases = h.TakeLeases("w");
  EXPECT_EQ(leases.size(), 3u);
}

TEST(CoreRevocation, AWorkersJobsGoToOthers) {
  TwoClients h;
  h.Give(WorkerSaid{.peer = "w",
                    .message = wire::WorkerHello{.worker = Named(50),
                                                 .name = "w",
                                                 .credit = 3,
                                                 .hardware = {.hardware_class = "class"}},
                    .key = "key of w"});
  const auto leases = h.TakeLeases("w");
  ASSERT_EQ(leases.size(), 3u);
  h.Give(KeysRevoked{{"key of w"}});
  EXPECT_EQ(h.core->Leased(), 0u);
  h.commands.clear();
  // The worker is gone; its messages are ignored.
  h.Report("w", leases.front());
  h.Write();
  EXPECT_TRUE(h.disk.outcomes.empty());
  EXPECT_TRUE(h.TakeLeases("w").empty());
  h.WorkerHello("v", 51, {.credit = 3});
  const auto again = h.TakeLeases("v");
  ASSERT_EQ(again.size(), 3u);
  EXPECT_EQ(again.front().attempt, 1u) << "the job was not to blame";
}

TEST(CoreRevocation, OthersAndThoseWithoutKeysStay) {
  OneLease h;
  h.Give(KeysRevoked{{"key of somebody"}});
  EXPECT_EQ(h.core->Leased(), 1u);
  EXPECT_TRUE(h.core->ClientOf("c").has_value());
  h.Report("w", h.lease);
  h.Write();
  EXPECT_EQ(h.disk.outcomes.size(), 1u);
}

}  // namespace
}  // namespace loopfleet::coordinator
