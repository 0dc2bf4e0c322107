// The fastest schedules of a program, on every engine.

#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/storage/conformance.h"

namespace loopfleet::storage {
namespace {

struct Wanted {
  Grade grade = Grade::kA;
  std::uint32_t threads = 1;
  std::string hardware_class = "cpu/avx2";
  bool same_code = false;
  bool in_doubt = false;
};

class BestSchedules : public Conformance {
 protected:
  // A batch of one job that measured tree `tree` of `program`.
  Outcome Measure(std::string_view program, std::uint8_t tree, double elapsed_ns,
                  const Wanted& wanted = {}) {
    Evaluation evaluation = SomeMeasurement(tree);
    std::get<Measurement>(evaluation.verdict).elapsed_ns = elapsed_ns;
    std::get<Measurement>(evaluation.verdict).grade = wanted.grade;
    evaluation.conditions->threads = wanted.threads;
    evaluation.conditions->cache = CacheState::kWarm;
    evaluation.conditions->hardware.hardware_class = wanted.hardware_class;
    evaluation.same_code = wanted.same_code;
    const JobSpec spec = PlainSpec(tree);
    const Outcome outcome = SomeOutcome({.batch = ++batch_}, spec, evaluation);
    MustApply({SomeBatch(batch_, {spec}), JobFinished{.outcome = outcome,
                                                      .program = ContentKey::Of(program),
                                                      .in_doubt = wanted.in_doubt}});
    return outcome;
  }
  std::vector<JobId> Best(const BestQuery& query) {
    std::vector<JobId> jobs;
    const auto found = reader_->FindBest(query).value();
    for (const BestSchedule& best : found) jobs.push_back(best.job);
    return jobs;
  }
  static BestQuery Of(std::string_view program, std::size_t max = 64) {
    return {.program = ContentKey::Of(program), .max = max};
  }
};

TEST_P(BestSchedules, TheFastestComeFirstWithWhatTheyAsked) {
  const Outcome slow = Measure("mm", 1, 300);
  const Outcome fast = Measure("mm", 2, 100);
  const Outcome middle = Measure("mm", 3, 200);
  Measure("another", 4, 10);
  EXPECT_EQ(Best(Of("mm")), (std::vector{fast.job, middle.job, slow.job}));
  EXPECT_EQ(Best(Of("mm", 2)), (std::vector{fast.job, middle.job}));
  EXPECT_TRUE(Best(Of("none")).empty());

  Restart();
  const BestSchedule best = reader_->FindBest(Of("mm")).value().at(0);
  EXPECT_EQ(best.spec, PlainSpec(2));
  EXPECT_EQ(best.measured.worker, fast.worker);
  EXPECT_EQ(best.measured.measured_at, fast.finished_at);
  Evaluation without_stages = fast.evaluation;
  without_stages.stages = {};
  EXPECT_EQ(best.measured.evaluation, without_stages);
}

TEST_P(BestSchedules, EachPlaceHasItsOwn) {
  const Outcome one = Measure("mm", 1, 300, {.threads = 1});
  const Outcome four = Measure("mm", 1, 100, {.threads = 4});
  const Outcome other = Measure("mm", 1, 200, {.hardware_class = "another"});
  EXPECT_EQ(Best(Of("mm")), (std::vector{other.job, one.job}));
  BestQuery query = Of("mm");
  query.threads = 4;
  EXPECT_EQ(Best(query), (std::vector{four.job}));
  query = Of("mm");
  query.hardware_class = "another";
  EXPECT_EQ(Best(query), (std::vector{other.job}));
  query.cache = CacheState::kCold;
  EXPECT_TRUE(Best(query).empty());
}

TEST_P(BestSchedules, ATreeCountsByItsNewestFigure) {
  Measure("mm", 1, 100);  // by chance
  const Outcome steady = Measure("mm", 2, 110);
  const Outcome again = Measure("mm", 1, 120);
  EXPECT_EQ(Best(Of("mm")), (std::vector{steady.job, again.job}));
}

TEST_P(BestSchedules, WhatIsNotToBeTrustedDoesNotCount) {
  const Outcome good = Measure("mm", 1, 100);
  Measure("mm", 2, 10, {.grade = Grade::kD});
  Measure("mm", 3, 10, {.in_doubt = true});
  Measure("mm", 4, 10, {.same_code = true});
  const Outcome doubted = Measure("mm", 5, 10);
  MustApply({ResultDoubted{.job = doubted.job, .reason = "an audit"}});
  EXPECT_EQ(Best(Of("mm")), (std::vector{good.job}));
  // A worker that drifts.
  MustApply({ResultsSuspected{.worker = good.worker, .since = WallTime(), .reason = "drift"}});
  while (store_->HasMoreToFlag()) ASSERT_TRUE(store_->FlagMore());
  EXPECT_TRUE(Best(Of("mm")).empty());
  const Outcome again = Measure("mm", 1, 100);
  EXPECT_EQ(Best(Of("mm")), (std::vector{again.job}));
}

TEST_P(BestSchedules, AnyNumberOfTreesLeavesTheFastest) {
  std::vector<JobId> fastest(3);
  for (std::uint8_t i = 0; i < 60; ++i) {
    const int elapsed = 1000 + (i * 37) % 60;  // every value once, in no order
    const Outcome outcome = Measure("mm", i, elapsed);
    if (elapsed < 1003) fastest[static_cast<std::size_t>(elapsed - 1000)] = outcome.job;
  }
  EXPECT_EQ(Best(Of("mm", 3)), fastest);
  Restart();
  const Outcome record = Measure("mm", 61, 5);
  EXPECT_EQ(Best(Of("mm", 2)), (std::vector{record.job, fastest[0]}));
}

TEST_P(BestSchedules, AGroupThatFailsEntersNothing) {
  const Outcome first = Measure("mm", 1, 100);
  Outcome outcome = SomeOutcome({.batch = ++batch_}, PlainSpec(2), SomeMeasurement(2));
  std::get<Measurement>(outcome.evaluation.verdict).elapsed_ns = 10;
  const JobFinished finished{.outcome = outcome, .program = ContentKey::Of("mm")};
  ExpectRefused({SomeBatch(batch_, {PlainSpec(2)}), finished, finished}, ErrorKind::kInvalid, "");
  EXPECT_EQ(Best(Of("mm")), (std::vector{first.job}));
  const Outcome second = Measure("mm", 2, 50);
  EXPECT_EQ(Best(Of("mm")), (std::vector{second.job, first.job}));
}

INSTANTIATE_TEST_SUITE_P(Engines, BestSchedules, ::testing::ValuesIn(kEngines), NameOf);

}  // namespace
}  // namespace loopfleet::storage
