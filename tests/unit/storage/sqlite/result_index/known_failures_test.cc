// Which failures answer for equal jobs, for how long, and whose verdict that takes.

#include "storage/sqlite/result_index/known_failures.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>

#include "storage/settled_failure.h"
#include "storage/sqlite/sqlite_reader.h"
#include "storage/sqlite/sqlite_store.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

const Witness kFirst{.worker = "worker-1", .host = "host-1"};  // of SomeOutcome
const Witness kNeighbour{.worker = "worker-2", .host = "host-1"};
const Witness kOther{.worker = "worker-3", .host = "host-2"};

class KnownFailureTest : public ScratchDatabase {
 protected:
  struct Verdict {
    Evaluation evaluation;
    Witness by = kFirst;
    std::vector<Witness> agreeing;
    std::uint64_t cut_above_ns = 0;
    OutcomeSource source = OutcomeSource::kMeasured;
    bool in_doubt = false;
  };
  void MustApply(const std::vector<Write>& writes) {
    const Status status = store_->Apply(writes);
    ASSERT_TRUE(status) << status.error().message;
  }
  // Stores the outcome of a job in a batch of its own, at `now_`.
  void Fail(Verdict verdict) {
    MustApply({SomeBatch(++batch_, {PlainSpec(4)})});
    verdict.evaluation.conditions->hardware.host = verdict.by.host;
    Outcome outcome =
        SomeOutcome({.batch = batch_, .source = verdict.source}, PlainSpec(4), verdict.evaluation);
    outcome.worker = verdict.by.worker;
    outcome.finished_at = now_;
    MustApply({JobFinished{.outcome = outcome,
                           .cut_above_ns = verdict.cut_above_ns,
                           .in_doubt = verdict.in_doubt,
                           .agreeing = verdict.agreeing}});
  }
  StoredAnswer Ask(const ResultKey& key, std::uint64_t cut_above_ns = 0) {
    return shared_
        ->FindFailure({.key = key,
                       .cut_above_ns = cut_above_ns,
                       .now = now_,
                       .candidates = [this] { return candidates_; }})
        .value();
  }
  bool Answers(FailureCode code) { return Ask(KeyFor(Failing(code)), 1000) != nullptr; }
  // A failure with a tree of its own for each code.
  static Evaluation Failing(FailureCode code) {
    Evaluation made = SomeFailure(code);
    made.subject = SomeKey(static_cast<std::uint8_t>(code));
    return made;
  }
  void Restart() {
    shared_.reset();
    store_.reset();
    store_ = OpenStore();
    shared_ = SqliteReader::Open(path(), store_->result_keys()).value();
  }

  std::uint64_t batch_ = 0;
  WallTime now_{Nanos(1'700'000'001'000'000'001)};
  std::vector<Witness> candidates_{kFirst};
  std::unique_ptr<SqliteStore> store_ = OpenStore();
  std::unique_ptr<StoreReader> shared_ = SqliteReader::Open(path(), store_->result_keys()).value();
};

// A verdict that faulty hardware could give.
constexpr std::array kStanding = {FailureCode::kCompileError, FailureCode::kRunCrash,
                                  FailureCode::kSandboxViolation, FailureCode::kWrongOutput};
// One that a worker's own limits could be the reason of.
constexpr std::array kOfLimits = {FailureCode::kCompileTimeout, FailureCode::kCompileOom,
                                  FailureCode::kRunTimeout, FailureCode::kRunOom};

TEST_F(KnownFailureTest, OneHostsVerdictAnswersNothingThatAnotherHostCouldGet) {
  for (const FailureCode code : kStanding) {
    SCOPED_TRACE(InfoOf(code).name);
    Fail({Failing(code)});
    candidates_ = {kFirst, kOther};
    EXPECT_FALSE(Answers(code));
    candidates_ = {kOther};
    EXPECT_FALSE(Answers(code));
    candidates_ = {};
    EXPECT_FALSE(Answers(code));
    candidates_ = {kFirst, kNeighbour};
    EXPECT_TRUE(Answers(code));
  }
}

TEST_F(KnownFailureTest, OneHostsVerdictAnswersForAnHour) {
  Fail({Failing(FailureCode::kRunCrash)});
  now_ += std::chrono::hours(1);
  EXPECT_TRUE(Answers(FailureCode::kRunCrash));
  now_ += Nanos(1);
  EXPECT_FALSE(Answers(FailureCode::kRunCrash));
  Fail({Failing(FailureCode::kRunCrash), kNeighbour});  // another worker is no other host
  now_ += std::chrono::hours(2);
  EXPECT_FALSE(Answers(FailureCode::kRunCrash));
}

TEST_F(KnownFailureTest, TwoHostsThatAgreeAnswerForTheClassAtAnyAge) {
  for (const FailureCode code : kStanding) Fail({Failing(code), kFirst, {kOther}});
  Fail({SomeFailure(FailureCode::kRunCrash)});
  now_ += std::chrono::hours(500);
  Fail({SomeFailure(FailureCode::kRunCrash), kOther});  // of another job
  now_ += std::chrono::hours(500);
  candidates_ = {{.worker = "worker-9", .host = "host-9"}};
  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted);
    for (const FailureCode code : kStanding) EXPECT_TRUE(Answers(code)) << InfoOf(code).name;
    EXPECT_TRUE(Ask(KeyFor(SomeFailure(FailureCode::kRunCrash))));
    if (!restarted) Restart();
  }
}

TEST_F(KnownFailureTest, HostsThatDisagreeDoNotAnswer) {
  Fail({SomeFailure(FailureCode::kRunCrash)});
  Fail({SomeFailure(FailureCode::kWrongOutput), kOther});
  candidates_ = {kFirst, kOther};
  EXPECT_FALSE(Ask(KeyFor(SomeFailure(FailureCode::kRunCrash))));
}

// Another worker, on the same host, too, may have been started with wider limits.
TEST_F(KnownFailureTest, AWorkersLimitsDoNotAnswerForAnotherWorker) {
  for (const FailureCode code : kOfLimits) {
    SCOPED_TRACE(InfoOf(code).name);
    Fail({Failing(code), kFirst, {kOther}});
    candidates_ = {kFirst};
    EXPECT_TRUE(Answers(code));
    candidates_ = {kFirst, kOther};
    EXPECT_TRUE(Answers(code));
    candidates_ = {kFirst, kNeighbour};
    EXPECT_FALSE(Answers(code));
    candidates_ = {};
    EXPECT_FALSE(Answers(code));
  }
}

// Otherwise each of a hundred workers would spend a time limit on each kernel that hangs.
TEST_F(KnownFailureTest, InALargeFleetThreeHostsAnswerForAllOfThem) {
  const auto on_host = [](int host, int start) {
    return Witness{.worker = fmt::format("worker-{}-{}", host, start),
                   .host = fmt::format("host-{}", host)};
  };
  candidates_.clear();
  for (int host = 0; host < 40; ++host) candidates_.push_back(on_host(host, 0));
  const FailureCode code = FailureCode::kRunTimeout;
  // A worker's name changes at each start: many verdicts of one host are one host's.
  for (int start = 0; start < 40; ++start) Fail({Failing(code), on_host(1, start)});
  Fail({Failing(code), on_host(2, 0)});
  EXPECT_FALSE(Answers(code));
  Fail({Failing(code), on_host(3, 0)});
  EXPECT_TRUE(Answers(code));
  now_ += kCircumstantialAge + Nanos(1);
  EXPECT_FALSE(Answers(code));
}

TEST_F(KnownFailureTest, ForgottenOnesAreRunAgain) {
  const auto forget = [&](const FailureFilter& filter) {
    return store_->ForgetFailures(filter).value();
  };
  Fail({Failing(FailureCode::kRunCrash)});
  Fail({Failing(FailureCode::kWrongOutput), kFirst, {kOther}});
  Fail({Failing(FailureCode::kCompileError), kOther});
  EXPECT_EQ(forget({.of = "worker-9"}), 0u);
  EXPECT_EQ(forget({.failed_before = now_}), 0u);
  candidates_ = {kOther};
  EXPECT_TRUE(Answers(FailureCode::kWrongOutput));
  EXPECT_EQ(forget({.of = "host-2", .code = FailureCode::kWrongOutput}), 1u);
  EXPECT_FALSE(Answers(FailureCode::kWrongOutput));  // it has one witness left
  EXPECT_TRUE(Answers(FailureCode::kCompileError));
  EXPECT_EQ(forget({.of = "worker-3"}), 1u);
  candidates_ = {kFirst};
  EXPECT_FALSE(Answers(FailureCode::kCompileError));
  EXPECT_TRUE(Answers(FailureCode::kRunCrash));
  EXPECT_EQ(forget({.failed_before = now_ + Nanos(1)}), 2u);
  EXPECT_FALSE(Answers(FailureCode::kRunCrash));
  Restart();
  EXPECT_FALSE(Answers(FailureCode::kRunCrash));
}

TEST_F(KnownFailureTest, ACrashAnswersForTheFullTuple) {
  const Evaluation crash = SomeFailure(FailureCode::kRunCrash);
  Fail({crash});
  const auto found = Ask(KeyFor(crash));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->evaluation.failure(), crash.failure());
  EXPECT_EQ(found->evaluation.conditions, crash.conditions);
  const auto changed = [&](auto change) {
    ResultKey key = KeyFor(crash);
    change(key);
    return Ask(key);
  };
  EXPECT_FALSE(changed([](ResultKey& key) { key.subject = SomeKey(99); }));
  EXPECT_FALSE(changed([](ResultKey& key) { key.hardware_class = "another"; }));
  EXPECT_FALSE(changed([](ResultKey& key) { key.compiler.revision = "another"; }));
  EXPECT_FALSE(changed([](ResultKey& key) { ++key.threads; }));
  EXPECT_FALSE(changed([](ResultKey& key) { key.policy = "another"; }));
  EXPECT_TRUE(changed([](ResultKey& key) { key.precision = 0.001; }));  // there is no figure
}

TEST_F(KnownFailureTest, ItIsKnownAfterARestart) {
  const Evaluation crash = SomeFailure(FailureCode::kRunCrash);
  Fail({crash});
  Restart();
  EXPECT_TRUE(Ask(KeyFor(crash)));
}

TEST_F(KnownFailureTest, WhatSaysNothingAboutTheTreeIsNotKnown) {
  for (const FailureCode code :
       {FailureCode::kUnstableTiming, FailureCode::kCancelled, FailureCode::kExpired,
        FailureCode::kDeviceFault, FailureCode::kNoMatchingWorker}) {
    Fail({SomeFailure(code)});
    EXPECT_FALSE(Ask(KeyFor(SomeFailure(code)))) << InfoOf(code).name;
  }
  Fail({.evaluation = SomeFailure(FailureCode::kRunCrash),
        .source = OutcomeSource::kStored});  // it was known
  EXPECT_FALSE(Ask(KeyFor(SomeFailure(FailureCode::kRunCrash))));
}

TEST_F(KnownFailureTest, ACutAnswersForItsBoundAndForLowerOnes) {
  const Evaluation cut = SomeFailure(FailureCode::kCut);
  Fail({.evaluation = cut, .cut_above_ns = 1000});
  EXPECT_TRUE(Ask(KeyFor(cut), 1000));
  EXPECT_TRUE(Ask(KeyFor(cut), 999));
  EXPECT_FALSE(Ask(KeyFor(cut), 1001));
  EXPECT_FALSE(Ask(KeyFor(cut), 0));  // wants a figure
}

// A cut answers every worker, as a figure does.
TEST_F(KnownFailureTest, ACutNeedsNoSecondWitness) {
  Fail({.evaluation = Failing(FailureCode::kCut), .cut_above_ns = 1000});
  candidates_ = {kOther};
  now_ += std::chrono::hours(1000);
  EXPECT_TRUE(Answers(FailureCode::kCut));
}

// It throttles, or its core is faulty.
TEST_F(KnownFailureTest, VerdictsOfAWorkerThatTurnsOutToDriftAreForgotten) {
  constexpr std::array kCodes = {FailureCode::kCut, FailureCode::kRunTimeout,
                                 FailureCode::kRunCrash};
  for (const FailureCode code : kCodes) {
    Fail({.evaluation = Failing(code), .agreeing = {kOther}, .cut_above_ns = 1000});
  }
  const auto suspect = [&](const std::string& worker, WallTime since) {
    MustApply({ResultsSuspected{
        .worker = worker, .since = since, .flagged_at = now_, .reason = "it drifted"}});
  };
  suspect("another", now_);
  suspect(kFirst.worker, now_ + Nanos(1));
  for (const FailureCode code : kCodes) EXPECT_TRUE(Answers(code)) << InfoOf(code).name;
  suspect(kFirst.worker, now_);
  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted);
    candidates_ = {kFirst};
    EXPECT_FALSE(Answers(FailureCode::kRunTimeout));
    EXPECT_FALSE(Answers(FailureCode::kRunCrash));
    candidates_ = {kOther};  // its own verdict stands
    EXPECT_TRUE(Answers(FailureCode::kRunTimeout));
    EXPECT_TRUE(Answers(FailureCode::kRunCrash));
    if (!restarted) Restart();
  }
}

TEST_F(KnownFailureTest, OneInDoubtAnswersNothing) {
  const Evaluation crash = SomeFailure(FailureCode::kRunCrash);
  Fail({crash});
  EXPECT_TRUE(Ask(KeyFor(crash)));
  MustApply({ResultDoubted{.job = {{1}, 0}, .flagged_at = now_, .reason = "an audit"}});
  EXPECT_FALSE(Ask(KeyFor(crash)));
  Restart();
  EXPECT_FALSE(Ask(KeyFor(crash)));
  EXPECT_FALSE(shared_->ReadOutcomes({1}, 0, {.max_rows = 1})
                   .value()
                   .at(0)
                   .evaluation.ok());  // still readable
}

TEST_F(KnownFailureTest, AVerdictGivenInQuarantineIsNone) {
  for (const FailureCode code : {FailureCode::kRunTimeout, FailureCode::kRunCrash}) {
    Fail({.evaluation = Failing(code), .in_doubt = true});
    EXPECT_FALSE(Answers(code)) << InfoOf(code).name;
  }
}

TEST_F(KnownFailureTest, WhatABusyHostMayHaveCausedAnswersForADay) {
  Fail({Failing(FailureCode::kRunTimeout)});
  now_ += std::chrono::hours(24);
  EXPECT_TRUE(Answers(FailureCode::kRunTimeout));
  now_ += Nanos(1);
  EXPECT_FALSE(Answers(FailureCode::kRunTimeout));
}

TEST_F(KnownFailureTest, AnOldOneDoesNotAnswerWhoWantsANewOne) {
  const Evaluation crash = SomeFailure(FailureCode::kRunCrash);
  Fail({crash});
  ResultKey key = KeyFor(crash);
  key.measured_since = now_ + Nanos(1);
  EXPECT_FALSE(Ask(key));
  key.measured_since = now_;
  EXPECT_TRUE(Ask(key));
}

TEST_F(KnownFailureTest, WhatWasUndoneIsNotKnown) {
  const Evaluation crash = SomeFailure(FailureCode::kRunCrash);
  MustApply({SomeBatch(1, {PlainSpec(4)})});
  const Outcome outcome = SomeOutcome({}, PlainSpec(4), crash);
  const std::vector<Write> twice{JobFinished{outcome}, JobFinished{outcome}};
  ASSERT_FALSE(store_->Apply(twice));
  EXPECT_FALSE(Ask(KeyFor(crash)));
}

}  // namespace
}  // namespace loopfleet::storage
