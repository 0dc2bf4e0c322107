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
  bool Answers(const JobSpec& spec, const std::string& code = "c0de") const {
    return measured_.Find(program_, spec, Measured(code), now_).has_value();
  }

  const looptree::Program program_ = ProgramOf("benchmark://mm-v0/mm8_8_8");
  MeasuredCode measured_{2};
  Instant now_{std::chrono::seconds(100)};
};

TEST_F(MeasuredCodeTest, AnswersJobsOfTheSameProgramCodeAndConditions) {
  EXPECT_FALSE(Answers({}));
  measured_.Add(program_, {}, Measured("c0de"), now_);
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
  measured_.Add(program_, {}, Measured("c0de"), now_);
  EXPECT_TRUE(Answers({.precision = 0.02}));
  EXPECT_FALSE(Answers({.precision = 0.005}));
  EXPECT_TRUE(Answers({.cut_above_ns = 200}));
  EXPECT_FALSE(Answers({.cut_above_ns = 100})) << "it may have to be cut";
  now_ += std::chrono::seconds(10);
  EXPECT_TRUE(Answers({.max_age_s = 11}));
  EXPECT_FALSE(Answers({.max_age_s = 9}));
}

TEST_F(MeasuredCodeTest, KeepsGoodFiguresAndTheNewestOnes) {
  measured_.Add(program_, {}, Measured("c", Grade::kC), now_);
  EXPECT_FALSE(Answers({}, "c"));
  Evaluation failed = Measured("f");
  failed.verdict = Failure{.code = FailureCode::kRunCrash, .message = "it crashed"};
  measured_.Add(program_, {}, failed, now_);
  EXPECT_FALSE(Answers({}, "f"));
  for (const char* code : {"1", "2", "2", "3"}) measured_.Add(program_, {}, Measured(code), now_);
  EXPECT_FALSE(Answers({}, "1"));
  EXPECT_TRUE(Answers({}, "2"));
  EXPECT_TRUE(Answers({}, "3"));
  measured_.Forget();
  EXPECT_FALSE(Answers({}, "3"));
  for (const char* code : {"4", "5", "6"}) measured_.Add(program_, {}, Measured(code), now_);
  EXPECT_FALSE(Answers({}, "4"));
  EXPECT_TRUE(Answers({}, "5"));
}

}  // namespace
}  // namespace loopfleet::worker
