#include "common/wire/codec/codec.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/wire/codec/fixed_messages.h"
#include "tests/unit/wire/codec/random_messages.h"

namespace loopfleet::wire {
namespace {

constexpr std::uint64_t kRounds = 200;

template <class Make, class Decode>
void CheckRoundTrips(std::size_t kinds, Make make, Decode decode) {
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
      SCOPED_TRACE(testing::Message() << "kind " << kind << ", seed " << seed);
      RandomMessages random(seed * 1000 + kind);
      const auto message = make(random, kind);
      const std::string frame = Encode(message);
      const auto decoded = decode(frame);
      ASSERT_TRUE(decoded.has_value());
      ASSERT_EQ(*decoded, message);
      ASSERT_EQ(Encode(*decoded), frame);
    }
  }
}

TEST(Codec, RequestsRoundTrip) {
  CheckRoundTrips(
      kRequestKinds, [](auto& random, auto kind) { return random.Request(kind); },
      DecodeClientRequest);
}
TEST(Codec, TheHeadOfARequestIsReadWithoutTheRest) {
  using Kind = RequestHead::Kind;
  const auto head_of = [](ClientMessage message) {
    return PeekAtRequest(Encode(ClientRequest{.number = 7, .message = std::move(message)}));
  };
  for (const auto& [head, kind] : {std::pair{head_of(ClientHello{}), Kind::kHello},
                                   std::pair{head_of(SubmitJobs{}), Kind::kSubmission},
                                   std::pair{head_of(ListWorkers{}), Kind::kOther}}) {
    EXPECT_EQ(head.kind, kind);
    EXPECT_EQ(head.number, 7u);
  }
  const RequestHead unreadable = PeekAtRequest("these are not the bytes of a message");
  EXPECT_EQ(unreadable.kind, Kind::kOther);
  EXPECT_EQ(unreadable.number, 0u);
}

TEST(Codec, RepliesRoundTrip) {
  CheckRoundTrips(
      kReplyKinds, [](auto& random, auto kind) { return random.Reply(kind); },
      DecodeCoordinatorReply);
}
TEST(Codec, WorkerMessagesRoundTrip) {
  CheckRoundTrips(
      kMessageKinds, [](auto& random, auto kind) { return random.Message(kind); },
      DecodeWorkerMessage);
}
TEST(Codec, WorkerCommandsRoundTrip) {
  CheckRoundTrips(
      kCommandKinds, [](auto& random, auto kind) { return random.Command(kind); },
      DecodeWorkerCommand);
}

TEST(Codec, APageInColumnsIsThePageInRows) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomMessages random(seed);
    OutcomePage page;
    page.batch.batch = BatchId{seed + 1};
    const std::uint64_t rows = random.Below(8);
    for (std::uint64_t i = 0; i < rows; ++i)
      page.outcomes.push_back(random.AnOutcome(page.batch.batch));
    const auto decoded =
        DecodeCoordinatorReplyInColumns(Encode(CoordinatorReply{.number = 7, .message = page}));
    ASSERT_TRUE(decoded.has_value());
    const auto& columns = std::get<ColumnPage>(*decoded);
    EXPECT_EQ(columns.number, 7u);
    EXPECT_EQ(columns.batch, page.batch);
    ASSERT_EQ(columns.outcomes.rows(), rows);
    OutcomeColumns appended;
    for (std::uint32_t i = 0; i < rows; ++i) {
      EXPECT_EQ(columns.outcomes.Row(i), page.outcomes[i]);
      appended.Append(page.outcomes[i]);
    }
    for (std::uint32_t i = 0; i < rows; ++i) EXPECT_EQ(appended.Row(i), page.outcomes[i]);
  }
}

TEST(Codec, JobsThatLieElsewhereTravelAsIfInTheMessage) {
  RandomMessages random(1);
  SubmitJobs submit{.request_id = Uuid::Random(), .append_to = BatchId{4}};
  std::vector<const JobSpec*> elsewhere;
  for (int i = 0; i < 5; ++i) submit.jobs.push_back(random.Spec());
  const std::vector<JobSpec> jobs = submit.jobs;
  for (const JobSpec& job : jobs) elsewhere.push_back(&job);
  const std::string expected = Encode(ClientRequest{.number = 3, .message = submit});
  submit.jobs.clear();
  EXPECT_EQ(EncodeSubmission(3, submit, elsewhere), expected);
}

TEST(Codec, OtherRepliesAreTheSameInColumns) {
  for (std::size_t kind = 0; kind < kReplyKinds; ++kind) {
    RandomMessages random(kind);
    const CoordinatorReply reply = random.Reply(kind);
    const auto decoded = DecodeCoordinatorReplyInColumns(Encode(reply));
    ASSERT_TRUE(decoded.has_value());
    if (std::holds_alternative<OutcomePage>(reply.message)) {
      EXPECT_TRUE(std::holds_alternative<ColumnPage>(*decoded));
    } else {
      EXPECT_EQ(std::get<CoordinatorReply>(*decoded), reply);
    }
  }
}

TEST(Codec, DefaultsOfASpecSurvive) {
  const JobSpec spec;
  const auto decoded = DecodeWorkerCommand(Encode(WorkerCommand{
      Leases{.leases = {{.lease = LeaseId{1}, .job = {}, .attempt = 1, .spec = spec}}}}));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(std::get<Leases>(*decoded).leases[0].spec, spec);
}

// A received frame may have any alignment.
TEST(Codec, FramesNeedNoAlignment) {
  const auto request = FixedRequests()[1].second;
  const std::string frame = Encode(request);
  for (std::size_t offset = 0; offset < 8; ++offset) {
    std::string buffer(offset, 'x');
    buffer += frame;
    const auto decoded = DecodeClientRequest(std::string_view(buffer).substr(offset));
    ASSERT_TRUE(decoded.has_value()) << offset;
    EXPECT_EQ(*decoded, request) << offset;
  }
}

// Texts from hosts, compilers and users reach the other side, whatever their bytes and length.
TEST(Codec, TextsForPeopleAreMadeFit) {
  Refused refused{.failure = {.code = FailureCode::kBusy, .message = "bad \xff byte"}};
  auto reply = DecodeCoordinatorReply(Encode(CoordinatorReply{.number = 1, .message = refused}));
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(std::get<Refused>(reply->message).failure.message, "bad ? byte");

  refused.failure.message.assign(100'000, 'x');
  reply = DecodeCoordinatorReply(Encode(CoordinatorReply{.number = 1, .message = refused}));
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(std::get<Refused>(reply->message).failure.message.size(), kMaxFailureTextBytes);
}

TEST(Codec, RowsShareTables) {
  OutcomePage page;
  page.batch.batch = BatchId{42};
  page.outcomes = {FixedMeasuredOutcome()};
  const std::size_t one = Encode(CoordinatorReply{.number = 1, .message = page}).size();
  page.outcomes.assign(101, FixedMeasuredOutcome());
  const std::size_t many = Encode(CoordinatorReply{.number = 1, .message = page}).size();
  // Conditions alone take over 500 bytes; a whole row with samples, actions and notes takes fewer.
  EXPECT_LT((many - one) / 100, 500u);
}

SubmitJobs Submission() { return std::get<SubmitJobs>(FixedRequests()[1].second.message); }

TEST(ContentDigest, IsOfTheContentAlone) {
  SubmitJobs other = Submission();
  other.request_id = Uuid::Random();
  EXPECT_EQ(ContentDigest(other), ContentDigest(Submission()));
}

TEST(ContentDigest, EveryPartOfTheContentCounts) {
  std::vector<SubmitJobs> different(9, Submission());
  different[0].append_to.reset();
  different[1].end = BatchEnd::kComplete;
  different[2].jobs.pop_back();
  std::swap(different[3].jobs[0], different[3].jobs[1]);
  different[4].jobs[0].actions.pop_back();
  different[5].jobs[0].actions[7] = looptree::Split{17};
  different[6].jobs[0].tag += " ";
  different[7].jobs[0].max_age_s = 0;
  different[8].jobs[1].source = looptree::BenchmarkUri{"program text\n"};
  for (std::size_t i = 0; i < different.size(); ++i) {
    EXPECT_NE(ContentDigest(different[i]), ContentDigest(Submission())) << i;
    for (std::size_t k = 0; k < i; ++k) {
      EXPECT_NE(ContentDigest(different[i]), ContentDigest(different[k])) << i << " " << k;
    }
  }
}

}  // namespace
}  // namespace loopfleet::wire
