#include "worker/evaluation/measured_code.h"

#include <gtest/gtest.h>

#include "common/looptree/datasets/benchmark.h"

namespace loopfleet::worker {
namespace {

looptree::Program ProgramOf(const char* uri) {
  return looptree::OpenBenchmark(looptree::Source(looptree::BenchmarkUri{uri}))
      .value()
      .start.program();
}

class MeasuredCodeTest : public ::testing::Test {
 protected:
  static Evaluation Measured(const std::string& code, Grade grade = Grade::kA) {
    Evaluation evaluation;
    evaluation.code_hash = code;
    evaluation.conditions.emplace();
    evaluation.conditions->hardware.clock_mhz = 3'000;
    evaluation.verdict = Measurement{.elapsed_ns = 100,
                                     .elapsed_low_ns = 99,
                                     .elapsed_high_ns = 101,
                                     .spread = 0.01,
                                     .grade = grade};
    return evaluation;
  }
  // `began`: how long before now.
  void Add(const Evaluation& evaluation, Nanos began = Nanos{0}) {
    measured_.Add(program_, {}, evaluation, {.from = now_ - began, .to = now_});
  }
  bool Answers(const JobSpec& spec, const std::string& code = "c0de") const {
    return measured_.Find(program_, spec, Measured(code), now_).has_value();
  }

  const looptree::Program program_ = ProgramOf("benchmark://mm-v0/mm8_8_8");
  MeasuredCode measured_{2};
  Instant now_{std::chrono::seconds(100)};
};

TEST_F(MeasuredCodeTest, AnswersJobsOfTheSameProgramCodeAndConditions) {
  EXPECT_FALSE(Answers({}));
  Add(Measured("c0de"));
  EXPECT_TRUE(Answers({}));
  EXPECT_FALSE(Answers({}, "another"));
  EXPECT_FALSE(Answers({.threads = 2}));
  EXPECT_FALSE(Answers({.cache = CacheState::kCold}));
  EXPECT_FALSE(Answers({.freshness = Freshness::kMeasureAgain}));
  const looptree::Program other = ProgramOf("benchmark://mm-v0/mm8_8_16");
  EXPECT_FALSE(measured_.Find(other, {}, Measured("c0de"), now_));
  Evaluation at_another_clock = Measured("c0de");
  at_another_clock.conditions->hardware.clock_mhz = 2'900;
  EXPECT_FALSE(measured_.Find(program_, {}, at_another_clock, now_));
}

TEST_F(MeasuredCodeTest, OnlyAsGoodAsTheJobAsksFor) {
  Add(Measured("c0de"));
  EXPECT_TRUE(Answers({.precision = 0.02}));
  EXPECT_FALSE(Answers({.precision = 0.005}));
  EXPECT_TRUE(Answers({.cut_above_ns = 200}));
  EXPECT_FALSE(Answers({.cut_above_ns = 100})) << "it may have to be cut";
  now_ += std::chrono::seconds(10);
  EXPECT_TRUE(Answers({.max_age_s = 11}));
  EXPECT_FALSE(Answers({.max_age_s = 9}));
}

TEST_F(MeasuredCodeTest, KeepsGoodFiguresAndTheNewestOnes) {
  Add(Measured("c", Grade::kC));
  EXPECT_FALSE(Answers({}, "c"));
  Evaluation failed = Measured("f");
  failed.verdict = Failure{.code = FailureCode::kRunCrash, .message = "it crashed"};
  Add(failed);
  EXPECT_FALSE(Answers({}, "f"));
  for (const char* code : {"1", "2", "2", "3"}) Add(Measured(code));
  EXPECT_FALSE(Answers({}, "1"));
  EXPECT_TRUE(Answers({}, "2"));
  EXPECT_TRUE(Answers({}, "3"));
  measured_.Forget(now_);
  EXPECT_FALSE(Answers({}, "3"));
  for (const char* code : {"4", "5", "6"}) Add(Measured(code));
  EXPECT_FALSE(Answers({}, "4"));
  EXPECT_TRUE(Answers({}, "5"));
}

// Its first round was timed while the core drifted, and its last one afterwards.
TEST_F(MeasuredCodeTest, WhatBeganBeforeItForgotIsNotKept) {
  measured_.Forget(now_);
  now_ += std::chrono::seconds(1);
  Add(Measured("c0de"), std::chrono::seconds(2));
  EXPECT_FALSE(Answers({}));
  Add(Measured("c0de"), std::chrono::milliseconds(5));
  EXPECT_TRUE(Answers({}));
}

}  // namespace
}  // namespace loopfleet::worker
