// A peer of a later version: its additions are refused by name where they matter, and ignored where
// the rules of growth allow it (docs/PROTOCOL.md).

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <gtest/gtest.h>

#include "common/wire/codec/codec.h"
#include "tests/unit/wire/codec/newer.capnp.h"

namespace loopfleet::wire {
namespace {

std::string FrameOf(capnp::MessageBuilder& builder) {
  const kj::Array<capnp::word> words = capnp::messageToFlatArray(builder);
  const auto bytes = words.asChars();
  return {bytes.begin(), bytes.size()};
}

TEST(NewerPeer, UnknownRequest) {
  capnp::MallocMessageBuilder builder;
  auto request = builder.initRoot<newer_schema::ClientRequest>();
  request.setNumber(12);
  request.setPauseBatch(42);
  const auto decoded = DecodeClientRequest(FrameOf(builder));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->number, 12u);
  EXPECT_EQ(std::get<UnknownMember>(decoded->message).member, 17u);
}

TEST(NewerPeer, UnknownReply) {
  capnp::MallocMessageBuilder builder;
  auto reply = builder.initRoot<newer_schema::CoordinatorReply>();
  reply.setNumber(13);
  reply.setExplanation("because");
  const auto decoded = DecodeCoordinatorReply(FrameOf(builder));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->number, 13u);
  EXPECT_EQ(std::get<UnknownMember>(decoded->message).member, 15u);
}

TEST(NewerPeer, UnknownWorkerMessage) {
  capnp::MallocMessageBuilder builder;
  builder.initRoot<newer_schema::WorkerMessage>().setProgress(1);
  const auto decoded = DecodeWorkerMessage(FrameOf(builder));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(std::get<UnknownMember>(*decoded).member, 9u);
}

TEST(NewerPeer, UnknownWorkerCommand) {
  capnp::MallocMessageBuilder builder;
  builder.initRoot<newer_schema::WorkerCommand>().setRemeasure();
  const auto decoded = DecodeWorkerCommand(FrameOf(builder));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(std::get<UnknownMember>(*decoded).member, 12u);
}

// Otherwise the worker would drop the message, and be sent the same one again and again.
TEST(NewerPeer, ALeaseThatCannotBeReadDoesNotHideTheOthers) {
  capnp::MallocMessageBuilder builder;
  auto leases = builder.initRoot<newer_schema::WorkerCommand>().initLeases(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    leases[i].setLease(7 + i);
    leases[i].initJob().setBatch(4);
    leases[i].getJob().setIndex(i);
    leases[i].initSpec().initSource().setUri("benchmark://mm-v0/mm64_64_64");
  }
  leases[1].getSpec().initActions(1)[0].setTile(8);
  const auto decoded = DecodeWorkerCommand(FrameOf(builder));
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  const auto& read = std::get<Leases>(*decoded);
  ASSERT_EQ(read.leases.size(), 2u);
  EXPECT_EQ(read.leases[0].lease, LeaseId{7});
  EXPECT_EQ(read.leases[1].lease, LeaseId{9});
  ASSERT_EQ(read.unreadable.size(), 1u);
  EXPECT_EQ(read.unreadable[0].lease, LeaseId{8});
  EXPECT_EQ(read.unreadable[0].job, (JobId{.batch = BatchId{4}, .index = 1}));
  EXPECT_EQ(read.unreadable[0].failure.code, FailureCode::kUnsupported);
  EXPECT_EQ(read.unreadable[0].failure.message,
            "action 0 is of kind 15, not known to this version");
}

// A submission of two jobs; `fill` gets the second one.
template <class Fill>
auto Submit(Fill fill) {
  capnp::MallocMessageBuilder builder;
  auto request = builder.initRoot<newer_schema::ClientRequest>();
  request.setNumber(14);
  auto submit = request.initSubmit();
  const Uuid id = Uuid::Random();
  submit.setRequestId(kj::arrayPtr(id.bytes.data(), id.bytes.size()));
  submit.setNote("a field of a later version");
  auto jobs = submit.initJobs(2);
  jobs[0].initSource().setUri("benchmark://mm-v0/mm64_64_64");
  jobs[1].initSource().setUri("benchmark://mm-v0/mm64_64_64");
  fill(jobs[1]);
  return DecodeClientRequest(FrameOf(builder));
}

TEST(NewerPeer, UnknownFieldsArePassedOver) {
  const auto decoded = Submit([](auto) {});
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(std::get<SubmitJobs>(decoded->message).jobs.size(), 2u);
}

TEST(NewerPeer, UnknownAction) {
  const auto decoded = Submit([](newer_schema::JobSpec::Builder job) {
    auto actions = job.initActions(3);
    actions[0].setUp();
    actions[1].setDown();
    actions[2].setTile(8);
  });
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().number, 14u);
  EXPECT_EQ(decoded.error().failure.code, FailureCode::kUnsupported);
  EXPECT_EQ(decoded.error().failure.action_index, 2u);
  EXPECT_EQ(decoded.error().failure.message,
            "job 1: action 2 is of kind 15, not known to this version");
}

TEST(NewerPeer, UnknownSource) {
  const auto decoded =
      Submit([](newer_schema::JobSpec::Builder job) { job.initSource().setStablehlo("module"); });
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().failure.code, FailureCode::kUnsupported);
  EXPECT_EQ(decoded.error().failure.message,
            "job 1: benchmark kind 3 is not known to this version");
}

TEST(NewerPeer, UnknownEnumerant) {
  const auto decoded = Submit([](newer_schema::JobSpec::Builder job) { job.setRules(99); });
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().failure.code, FailureCode::kUnsupported);
  EXPECT_EQ(decoded.error().failure.message, "job 1: rules 99 is not known to this version");
}

TEST(NewerPeer, NothingFilledIn) {
  const auto no_source = Submit([](newer_schema::JobSpec::Builder job) { job.disownSource(); });
  ASSERT_FALSE(no_source.has_value());
  EXPECT_EQ(no_source.error().failure.code, FailureCode::kMalformed);

  const auto no_action = Submit([](newer_schema::JobSpec::Builder job) { job.initActions(1); });
  ASSERT_FALSE(no_action.has_value());
  EXPECT_EQ(no_action.error().failure.code, FailureCode::kMalformed);

  capnp::MallocMessageBuilder builder;
  builder.initRoot<newer_schema::ClientRequest>().setNumber(15);
  const auto no_message = DecodeClientRequest(FrameOf(builder));
  ASSERT_FALSE(no_message.has_value());
  EXPECT_EQ(no_message.error().number, 15u);
  EXPECT_EQ(no_message.error().failure.code, FailureCode::kMalformed);
}

TEST(NewerPeer, UnknownFailureCode) {
  capnp::MallocMessageBuilder builder;
  auto refused = builder.initRoot<newer_schema::CoordinatorReply>().initRefused();
  refused.initFailure().setCode(9999);
  const auto decoded = DecodeCoordinatorReply(FrameOf(builder));
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().code, FailureCode::kUnsupported);
}

}  // namespace
}  // namespace loopfleet::wire
