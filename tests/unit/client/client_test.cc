#include "client/client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/base/sha256.h"
#include "common/wire/bounds.h"
#include "tests/unit/client/fake_coordinator.h"

namespace loopfleet::client {
namespace {

using namespace std::chrono_literals;
using Reply = std::optional<wire::CoordinatorMessage>;

constexpr const char* kAnyPort = "tcp://127.0.0.1:0";

// Limits so long that nothing times out or is resent, even on a slow machine.
ClientOptions Patient(const std::string& address) {
  return {.address = address,
          .connect_limit = 60s,
          .silence_limit = 60s,
          .resend_after = 60s,
          .busy_limit = 60s};
}

// Resends soon; the fake must accept repeated requests.
ClientOptions Repeating(const std::string& address) {
  ClientOptions options = Patient(address);
  options.resend_after = 50ms;
  return options;
}

JobSpec SomeJob() {
  return {.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm4_4_4"},
          .actions = {looptree::Up{}}};
}

Outcome OutcomeOf(BatchId batch, std::uint32_t index, std::uint64_t sequence) {
  return {.job = {batch, index},
          .sequence = sequence,
          .evaluation = {.verdict = Failure{.code = FailureCode::kRunCrash, .message = "x"}},
          .benchmark = looptree::BenchmarkUri{"benchmark://mm-v0/mm4_4_4"}};
}

TEST(ClientTest, ConnectsAndKnowsWhoWelcomedIt) {
  FakeCoordinator coordinator(kAnyPort, Greeting([](const auto&) { return Reply(); }));
  const auto client = Client::Connect(Patient(coordinator.endpoint()));
  ASSERT_TRUE(client.has_value()) << client.error().message;
  EXPECT_EQ(client->coordinator(), "fake");
  EXPECT_EQ(client->epoch(), 7u);
}

// An older coordinator would pass over the field, and answer with a figure.
TEST(ClientTest, SendsNoFieldThatTheCoordinatorDoesNotKnow) {
  std::atomic<int> submissions = 0;
  FakeCoordinator coordinator(kAnyPort, [&](const wire::ClientRequest& request) -> Reply {
    if (std::holds_alternative<wire::ClientHello>(request.message)) {
      return wire::Welcome{.version = {.major = 1, .minor = 1}, .coordinator = "old"};
    }
    ++submissions;
    return wire::Accepted{.batch = {1}};
  });
  auto client = Client::Connect(Patient(coordinator.endpoint()));
  ASSERT_TRUE(client.has_value());
  JobSpec profile = SomeJob();
  profile.profile = ProfileLevel::kRoots;
  const auto refused = client->Submit(std::vector{SomeJob(), profile});
  ASSERT_FALSE(refused.has_value());
  ASSERT_TRUE(refused.error().refusal.has_value());
  EXPECT_EQ(refused.error().refusal->code, FailureCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("1.2"), std::string::npos) << refused.error().message;
  EXPECT_EQ(submissions, 0);
  JobSpec graded = SomeJob();
  graded.min_grade = Grade::kB;
  EXPECT_TRUE(client->Submit(std::vector{graded}).has_value());
}

// What a coordinator holds of one program.
struct ProgramKeeper {
  std::string held;
  Reply Keep(const wire::BlobPiece& piece) {
    if (piece.offset == held.size()) held += piece.bytes;
    return wire::BlobHeld{.bytes = held.size()};
  }
};

TEST(ClientTest, SendsOnlyWhatTheCoordinatorLacksOfAProgram) {
  const std::string program(wire::kMaxBlobPieceBytes * 2 + 5, 'x');
  ProgramKeeper keeper{.held = program.substr(0, wire::kMaxBlobPieceBytes)};
  std::atomic<int> questions = 0;
  FakeCoordinator coordinator(kAnyPort, Greeting([&](const wire::ClientRequest& request) {
                                ++questions;
                                return keeper.Keep(std::get<wire::BlobPiece>(request.message));
                              }));
  auto client = Client::Connect(Patient(coordinator.endpoint()));
  ASSERT_TRUE(client.has_value());
  const auto uri = client->AddProgram(program);
  ASSERT_TRUE(uri.has_value()) << uri.error().message;
  EXPECT_EQ(*uri, "bitcode://sha256/" + Sha256Of(program));
  EXPECT_EQ(questions, 3) << "how much; the second piece; the rest";
  EXPECT_FALSE(client->AddProgram("").has_value());
  EXPECT_FALSE(client->AddProgram(std::string(wire::kMaxBlobBytes + 1, 'x')).has_value());
  EXPECT_EQ(questions, 3);
}

TEST(ClientTest, SendsAProgramAgainThatWasDroppedAndGivesUpInTheEnd) {
  const std::string program(wire::kMaxBlobPieceBytes + 5, 'x');
  const auto add = [&](FailureCode why, int to_drop, std::atomic<int>& drops) {
    ProgramKeeper keeper;
    FakeCoordinator coordinator(
        kAnyPort, Greeting([&](const wire::ClientRequest& request) -> Reply {
          const auto& piece = std::get<wire::BlobPiece>(request.message);
          if (piece.offset == 0 || drops == to_drop) return keeper.Keep(piece);
          ++drops;
          keeper.held.clear();
          if (why == FailureCode::kBusy) return wire::BlobHeld{.bytes = 0};
          return wire::Refused{.failure = {.code = why, .message = "other bytes"}};
        }));
    return Client::Connect(Patient(coordinator.endpoint())).value().AddProgram(program);
  };
  for (const FailureCode why : {FailureCode::kInvalidBenchmark, FailureCode::kBusy}) {
    std::atomic<int> drops = 0;
    EXPECT_TRUE(add(why, 2, drops).has_value());
    EXPECT_EQ(drops, 2);
    drops = 0;
    const auto refused = add(why, 1'000, drops);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().refusal->code, why);
    EXPECT_EQ(drops, 3);
  }
}

TEST(ClientTest, SendsNoProgramToACoordinatorThatKeepsNone) {
  FakeCoordinator coordinator(kAnyPort, [&](const wire::ClientRequest& request) -> Reply {
    EXPECT_TRUE(std::holds_alternative<wire::ClientHello>(request.message));
    return wire::Welcome{.version = {.major = 1, .minor = 2}, .coordinator = "old"};
  });
  auto client = Client::Connect(Patient(coordinator.endpoint()));
  ASSERT_TRUE(client.has_value());
  const auto refused = client->AddProgram("BC");
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("1.3"), std::string::npos);
}

TEST(ClientTest, SaysUnavailableWhenNobodyAnswers) {
  FakeCoordinator coordinator(kAnyPort, [](const auto&) { return Reply(); });
  ClientOptions options = Repeating(coordinator.endpoint());
  options.connect_limit = 300ms;
  const auto client = Client::Connect(options);
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().kind, ErrorKind::kUnavailable);
  EXPECT_NE(client.error().message.find(coordinator.endpoint()), std::string::npos);
}

TEST(ClientTest, GivesARefusalAsItsFailure) {
  FakeCoordinator coordinator(
      kAnyPort, Greeting([](const auto&) -> Reply {
        return wire::Refused{.failure = {.code = FailureCode::kForbidden, .message = "not you"}};
      }));
  auto client = Client::Connect(Patient(coordinator.endpoint()));
  ASSERT_TRUE(client.has_value());
  const auto answer = client->ListWorkers();
  ASSERT_FALSE(answer.has_value());
  ASSERT_TRUE(answer.error().refusal.has_value());
  EXPECT_EQ(answer.error().refusal->code, FailureCode::kForbidden);
  EXPECT_EQ(answer.error().message, "FORBIDDEN: not you");
}

TEST(ClientTest, SendsTheSameSubmissionAgainAfterASilence) {
  std::atomic<int> submissions = 0;
  FakeCoordinator coordinator(kAnyPort, Greeting([&](const wire::ClientRequest& request) -> Reply {
                                const auto& submit = std::get<wire::SubmitJobs>(request.message);
                                if (++submissions < 3) return std::nullopt;  // lost in transit
                                return wire::Accepted{
                                    .batch = {4},
                                    .job_count = static_cast<std::uint32_t>(submit.jobs.size())};
                              }));
  auto client = Client::Connect(Repeating(coordinator.endpoint()));
  ASSERT_TRUE(client.has_value());
  const std::vector jobs(2, SomeJob());
  const auto batch = client->Submit(jobs);
  ASSERT_TRUE(batch.has_value()) << batch.error().message;
  EXPECT_EQ(*batch, BatchId{4});

  std::set<std::string> ids;
  int hellos = 0;
  for (const auto& request : coordinator.Requests()) {
    if (const auto* submit = std::get_if<wire::SubmitJobs>(&request.message)) {
      ids.insert(submit->request_id.ToString());
    } else {
      ++hellos;
    }
  }
  EXPECT_EQ(ids.size(), 1u) << "each time under the same id";
  EXPECT_GE(hellos, 3) << "greets again before it sends again";
}

TEST(ClientTest, SaysOnceThatNoAnswerHasCome) {
  std::atomic<int> asked = 0;
  FakeCoordinator coordinator(kAnyPort, Greeting([&](const auto&) -> Reply {
                                if (++asked < 4) return std::nullopt;
                                return wire::WorkerList{};
                              }));
  ClientOptions options = Repeating(coordinator.endpoint());
  std::vector<std::string> told;
  options.on_wait = [&](const std::string& why) { told.push_back(why); };
  options.told_after = 20ms;
  auto client = Client::Connect(options);
  ASSERT_TRUE(client.has_value()) << client.error().message;
  told.clear();
  ASSERT_TRUE(client->ListWorkers().has_value());
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].starts_with("no answer from the coordinator at tcp://")) << told[0];
}

TEST(ClientTest, OffersJobsAgainWhenTheQueueIsFull) {
  std::atomic<int> submissions = 0;
  FakeCoordinator coordinator(kAnyPort, Greeting([&](const auto&) -> Reply {
                                if (++submissions < 3) {
                                  return wire::Refused{.failure = {.code = FailureCode::kBusy},
                                                       .retry_after_ms = 20};
                                }
                                return wire::Accepted{.batch = {9}, .job_count = 1};
                              }));
  auto client = Client::Connect(Patient(coordinator.endpoint()));
  ASSERT_TRUE(client.has_value());
  EXPECT_EQ(client->Submit(std::vector{SomeJob()}).value(), BatchId{9});
  EXPECT_EQ(submissions, 3);
}

// Refuses the first two hellos and the first two other messages with `code`.
FakeCoordinator::Mind Reluctant(FailureCode code, std::atomic<int>& refusals) {
  return [code, &refusals, hellos = 0, others = 0](const wire::ClientRequest& request) mutable {
    const bool is_hello = std::holds_alternative<wire::ClientHello>(request.message);
    if (++(is_hello ? hellos : others) < 3) {
      ++refusals;
      return Reply(wire::Refused{.failure = {.code = code}, .retry_after_ms = 20});
    }
    if (is_hello) return Reply(wire::Welcome{.coordinator = "fake", .epoch = 7});
    if (std::holds_alternative<wire::SubmitJobs>(request.message)) {
      return Reply(wire::Accepted{.batch = {9}, .job_count = 1});
    }
    return Reply(wire::OutcomePage{.batch = {.batch = {3}, .state = wire::BatchState::kRunning}});
  };
}

class PassingRefusals : public testing::TestWithParam<FailureCode> {};

TEST_P(PassingRefusals, AreWaitedForByEveryCall) {
  std::atomic<int> refusals = 0;
  FakeCoordinator coordinator(kAnyPort, Reluctant(GetParam(), refusals));
  auto client = Client::Connect(Patient(coordinator.endpoint()));
  ASSERT_TRUE(client.has_value()) << client.error().message;
  EXPECT_EQ(refusals, 2);
  const auto page = client->Fetch({3}, 0, 0s);
  ASSERT_TRUE(page.has_value()) << page.error().message;
  EXPECT_EQ(refusals, 4);
}

TEST_P(PassingRefusals, AreWaitedForNoLongerThanTheLimit) {
  FakeCoordinator coordinator(kAnyPort, Greeting([](const auto&) -> Reply {
                                return wire::Refused{.failure = {.code = GetParam()},
                                                     .retry_after_ms = 1500};
                              }));
  ClientOptions options = Patient(coordinator.endpoint());
  options.busy_limit = 0ms;
  auto client = Client::Connect(options);
  ASSERT_TRUE(client.has_value()) << client.error().message;
  const auto list = client->ListWorkers();
  ASSERT_FALSE(list.has_value());
  EXPECT_EQ(list.error().refusal.value().code, GetParam());
  EXPECT_NE(list.error().message.find("; try again in 1.5 s"), std::string::npos)
      << list.error().message;
}

INSTANTIATE_TEST_SUITE_P(ClientTest, PassingRefusals,
                         testing::Values(FailureCode::kBusy, FailureCode::kQuotaExceeded,
                                         FailureCode::kStorageFull, FailureCode::kShuttingDown),
                         [](const auto& one) { return std::string(InfoOf(one.param).name); });

TEST(ClientTest, SaysWhatTheTimeWasSpentOn) {
  FakeCoordinator coordinator(
      kAnyPort, Greeting([](const auto&) -> Reply {
        return wire::Refused{.failure = {.code = FailureCode::kBusy, .message = "no room"}};
      }));
  auto client = Client::Connect(Patient(coordinator.endpoint()));
  ASSERT_TRUE(client.has_value()) << client.error().message;
  // On a slow machine even the first reply may miss a short limit; then retry with a longer one.
  for (Nanos limit = 200ms; limit < 60s; limit *= 4) {
    client->AllowFinalCalls(limit);  // a deadline
    const auto list = client->ListWorkers();
    ASSERT_FALSE(list.has_value());
    ASSERT_EQ(list.error().kind, ErrorKind::kTimeout);
    if (list.error().message.find("BUSY: no room") != std::string::npos) return;
  }
  FAIL() << "it never did";
}

TEST(ClientTest, GreetsACoordinatorThatDoesNotKnowItAnyMore) {
  std::atomic<int> hellos = 0;
  FakeCoordinator coordinator(kAnyPort, [&](const wire::ClientRequest& request) -> Reply {
    if (std::holds_alternative<wire::ClientHello>(request.message)) {
      return wire::Welcome{.coordinator = "fake", .epoch = static_cast<std::uint64_t>(++hellos)};
    }
    if (hellos == 1) return wire::Refused{.failure = {.code = FailureCode::kUnauthenticated}};
    return wire::WorkerList{};
  });
  auto client = Client::Connect(Patient(coordinator.endpoint()));
  ASSERT_TRUE(client.has_value());
  EXPECT_TRUE(client->ListWorkers().has_value());
  EXPECT_EQ(client->epoch(), 2u);
}

// A coordinator that answers every hello with the next of these incarnations, the last one for
// good.
struct Restored {
  explicit Restored(std::vector<Uuid> names) : incarnations(std::move(names)) {}
  Reply operator()(const wire::ClientRequest& request) {
    if (std::holds_alternative<wire::ClientHello>(request.message)) {
      const std::size_t at = std::min<std::size_t>(hellos++, incarnations.size() - 1);
      return wire::Welcome{.coordinator = "fake", .epoch = 7, .incarnation = incarnations[at]};
    }
    // Each restart forgets the client.
    if (asked++ + 1 < incarnations.size()) {
      return wire::Refused{.failure = {.code = FailureCode::kUnauthenticated}};
    }
    return wire::BatchInfo{.batch = {2}};
  }
  std::vector<Uuid> incarnations;
  std::size_t hellos = 0;
  std::size_t asked = 0;
};

TEST(ClientTest, ReadsNothingFromADatabaseThatReplacedItsOwn) {
  FakeCoordinator coordinator(kAnyPort, Restored({Uuid::Random(), Uuid::Random()}));
  auto client = Client::Connect(Patient(coordinator.endpoint()));
  ASSERT_TRUE(client.has_value());
  for (int call = 0; call < 2; ++call) {
    const auto batch = client->ShowBatch({2});
    ASSERT_FALSE(batch.has_value()) << "another client's batch";
    EXPECT_EQ(batch.error().kind, ErrorKind::kNotFound);
    EXPECT_NE(batch.error().message.find("was replaced"), std::string::npos);
  }
}

// The hello that goes with a repeated request is not waited for.
TEST(ClientTest, NoticesAnotherDatabaseWhenItRepeatsARequest) {
  std::atomic<int> hellos = 0;
  const std::vector<Uuid> names{Uuid::Random(), Uuid::Random()};
  FakeCoordinator coordinator(kAnyPort, [&](const wire::ClientRequest& request) -> Reply {
    if (std::holds_alternative<wire::ClientHello>(request.message)) {
      return wire::Welcome{.epoch = 7, .incarnation = names[hellos++ == 0 ? 0 : 1]};
    }
    return hellos == 1 ? Reply() : wire::BatchInfo{.batch = {2}};
  });
  auto client = Client::Connect(Repeating(coordinator.endpoint()));
  ASSERT_TRUE(client.has_value());
  const auto batch = client->ShowBatch({2});
  ASSERT_FALSE(batch.has_value());
  EXPECT_EQ(batch.error().kind, ErrorKind::kNotFound);
}

TEST(ClientTest, ARestartOrAnUpgradeReplacesNoDatabase) {
  const Uuid same = Uuid::Random();
  for (const auto& names : {std::vector{same, same}, std::vector{Uuid{}, same, same}}) {
    FakeCoordinator coordinator(kAnyPort, Restored(names));
    auto client = Client::Connect(Patient(coordinator.endpoint()));
    ASSERT_TRUE(client.has_value());
    Answer<wire::BatchInfo> batch = client->ShowBatch({2});
    if (!batch) batch = client->ShowBatch({2});  // UNAUTHENTICATED twice in a row is an answer
    EXPECT_TRUE(batch.has_value()) << batch.error().message;
  }
}

TEST(ClientTest, WaitsThroughARestart) {
  const auto answer = Greeting([](const auto&) -> Reply { return wire::WorkerList{}; });
  auto coordinator = std::make_unique<FakeCoordinator>(kAnyPort, answer);
  const std::string endpoint = coordinator->endpoint();
  auto client = Client::Connect(Repeating(endpoint));
  ASSERT_TRUE(client.has_value());
  coordinator.reset();
  std::thread restart([&] {
    std::this_thread::sleep_for(300ms);  // the length of the outage, not a wait
    coordinator = std::make_unique<FakeCoordinator>(endpoint, answer);
  });
  const auto list = client->ListWorkers();
  restart.join();
  EXPECT_TRUE(list.has_value()) << list.error().message;
}

TEST(ClientTest, FollowsPageByPageToTheLastOutcome) {
  const BatchId batch{3};
  FakeCoordinator coordinator(
      kAnyPort, Greeting([&](const wire::ClientRequest& request) -> Reply {
        const auto& fetch = std::get<wire::FetchOutcomes>(request.message);
        const auto next = static_cast<std::uint32_t>(fetch.after_sequence);
        wire::OutcomePage page{.batch = {.batch = batch,
                                         .state = next + 1 == 3 ? wire::BatchState::kFinished
                                                                : wire::BatchState::kRunning,
                                         .job_count = 3,
                                         .finished = next + 1}};
        // The jobs finish in another order than submitted.
        page.outcomes.push_back(OutcomeOf(batch, 2 - next, next + 1));
        return page;
      }));
  auto client = Client::Connect(Patient(coordinator.endpoint()));
  ASSERT_TRUE(client.has_value());
  std::vector<std::uint32_t> indices;
  const auto info = client->Follow(batch, [&](const wire::OutcomePage& page) {
    for (const auto& outcome : page.outcomes) indices.push_back(outcome.job.index);
  });
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(indices, (std::vector<std::uint32_t>{2, 1, 0}));
}

TEST(ClientTest, NoticesAGapInTheOutcomes) {
  FakeCoordinator coordinator(
      kAnyPort, Greeting([&](const auto&) -> Reply {
        return wire::OutcomePage{
            .batch = {.batch = {3}, .state = wire::BatchState::kRunning, .job_count = 5},
            .outcomes = {OutcomeOf({3}, 0, 2)}};
      }));
  auto client = Client::Connect(Patient(coordinator.endpoint()));
  ASSERT_TRUE(client.has_value());
  const auto info = client->Follow({3}, [](const auto&) {});
  ASSERT_FALSE(info.has_value());
  EXPECT_EQ(info.error().kind, ErrorKind::kCorrupt);
}

TEST(ClientTest, StopsWhenAskedTo) {
  std::atomic<bool> stop = false;
  FakeCoordinator coordinator(kAnyPort, Greeting([&](const auto&) -> Reply {
                                stop = true;  // while the client waits for the reply
                                return std::nullopt;
                              }));
  ClientOptions options = Patient(coordinator.endpoint());
  options.stop = &stop;
  auto client = Client::Connect(options);
  ASSERT_TRUE(client.has_value());
  const auto answer = client->ListWorkers();
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().kind, ErrorKind::kClosed);
}

TEST(ClientTest, StopsAtTheDeadline) {
  FakeCoordinator coordinator(kAnyPort, Greeting([](const auto&) { return Reply(); }));
  ClientOptions options = Patient(coordinator.endpoint());
  // On a slow machine the deadline may pass while the client connects; then retry with a longer
  // one.
  for (Nanos limit = 400ms;; limit *= 4) {
    options.deadline = SystemClock().Now() + limit;
    auto client = Client::Connect(options);
    if (!client && limit < 60s) {
      ASSERT_EQ(client.error().kind, ErrorKind::kTimeout);
      continue;
    }
    ASSERT_TRUE(client.has_value()) << client.error().message;
    const auto answer = client->ListWorkers();
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().kind, ErrorKind::kTimeout);
    return;
  }
}

}  // namespace
}  // namespace loopfleet::client
