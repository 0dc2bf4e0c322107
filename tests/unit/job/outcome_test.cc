#include "common/job/outcome.h"

#include <gtest/gtest.h>

namespace loopfleet {
namespace {

TEST(Outcome, LabelIsOkOrTheCode) {
  Evaluation evaluation{.verdict = Measurement{.elapsed_ns = 10}};
  EXPECT_EQ(OutcomeLabel(evaluation), "ok");
  evaluation.verdict = Failure{.code = FailureCode::kRunTimeout};
  EXPECT_EQ(OutcomeLabel(evaluation), "RUN_TIMEOUT");
}

TEST(Outcome, GflopPerSecondIsWorkOverTime) {
  EXPECT_DOUBLE_EQ(GflopPerSecond(524288, Measurement{.elapsed_ns = 5242.88}), 100.0);
}

TEST(Outcome, StagesHaveNamesInOrder) {
  EXPECT_EQ(StageName(kStages.front()), "queue");
  EXPECT_EQ(StageName(kStages.back()), "store");
  StageDurations stages;
  stages[Stage::kCompile] = Nanos(5);
  EXPECT_EQ(stages[Stage::kCompile], Nanos(5));
  EXPECT_EQ(stages[Stage::kVerify], Nanos(0));
}

TEST(Outcome, JobIdPrintsBatchAndIndex) {
  EXPECT_EQ(fmt::format("{}", JobId{BatchId{7}, 3}), "7.3");
}

TEST(Outcome, HardwareClassTellsMachinesApart) {
  HardwareFacts facts{.model = "M", .isa = "avx2", .physical_cores = 2, .logical_cores = 4};
  const CpuIdentity identity{.vendor = "V", .family_model_stepping = "6.85.7"};
  const std::string one = CpuClassOf(facts, identity);
  facts.isa = "avx512";
  EXPECT_NE(CpuClassOf(facts, identity), one);
}

}  // namespace
}  // namespace loopfleet
