#include "client/cli/text/outcome_text.h"

#include <gtest/gtest.h>

namespace loopfleet::client {
namespace {

using namespace std::chrono_literals;

TEST(OutcomeTextTest, SaysDurationsInFittingUnits) {
  EXPECT_EQ(DurationText(0ns), "0 ns");
  EXPECT_EQ(DurationText(999ns), "999 ns");
  EXPECT_EQ(DurationText(1250ns), "1.25 us");
  EXPECT_EQ(DurationText(12500us), "12.5 ms");
  EXPECT_EQ(DurationText(90s), "90 s");
}

TEST(OutcomeTextTest, SaysTimesInUtc) {
  EXPECT_EQ(TimeText(WallTime(1700000000s)), "2023-11-14 22:13:20");
}

TEST(OutcomeTextTest, SaysWhichActionIsToBlame) {
  EXPECT_EQ(FailureText({.code = FailureCode::kInvalidAction, .message = "no", .action_index = 2}),
            "INVALID_ACTION: no (action 2)");
  EXPECT_EQ(FailureText({.code = FailureCode::kCancelled, .message = ""}),
            "CANCELLED: the batch was cancelled");
}

TEST(OutcomeTextTest, AMessageDoesNotSteerTheTerminal) {
  EXPECT_EQ(FailureText({.code = FailureCode::kRunCrash, .message = "a\x1b[2J\nb"}),
            R"(RUN_CRASH: a\x1b[2J)"
            "\nb");
}

TEST(OutcomeTextTest, WhatAWorkerSaysOfItselfDoesNotSteerTheTerminal) {
  const JobSpec spec{.source = looptree::BenchmarkUri{"generator://csmith-v0/\x1b[2J"}};
  Outcome outcome;
  outcome.evaluation.verdict = Observed{};
  outcome.evaluation.conditions =
      Conditions{.hardware = {.model = "m\x1b", .isa = "i\x1b", .host = "h\x1b"}};
  const std::string text = AnswerText(spec, outcome);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_NE(text.find(R"(on m\x1b (i\x1b), host h\x1b)"), std::string::npos) << text;
}

TEST(OutcomeTextTest, ShowsWhereAStoredFigureComesFrom) {
  const JobSpec spec{.source = looptree::BenchmarkUri{"benchmark://loop_tool-cpu-v0/1024"}};
  Outcome outcome{.source = OutcomeSource::kStored, .worker = "host-1"};
  outcome.evaluation.flop_count = 1024;
  outcome.evaluation.verdict = Measurement{.elapsed_ns = 512,
                                           .elapsed_low_ns = 500,
                                           .elapsed_high_ns = 524,
                                           .elapsed_min_ns = 500,
                                           .elapsed_mean_ns = 512,
                                           .spread = 0.0234,
                                           .grade = Grade::kB,
                                           .iterations_per_sample = 100,
                                           .samples_ns = {500, 512, 524},
                                           .sample_flags = {0, kSampleContended, 0}};
  const std::string text = AnswerText(spec, outcome);
  EXPECT_NE(text.find("benchmark://loop_tool-cpu-v0/1024\nfor a in 1024 : L0"), std::string::npos)
      << text;
  EXPECT_NE(text.find("2 GFLOP/s, spread 2.3 %"), std::string::npos) << text;
  EXPECT_NE(text.find("grade B"), std::string::npos) << text;
  EXPECT_NE(text.find("median of 2 accepted of 3 samples"), std::string::npos) << text;
  EXPECT_NE(text.find("answered from the store, measured by host-1"), std::string::npos) << text;
  EXPECT_EQ(text.find("device:"), std::string::npos) << text;
  EXPECT_EQ(text.find("thinned"), std::string::npos) << text;

  auto& measurement = std::get<Measurement>(outcome.evaluation.verdict);
  measurement.thinned = Thinned{.samples_before = 15, .accepted_before = 13};
  const std::string of_thinned = AnswerText(spec, outcome);
  EXPECT_NE(of_thinned.find("median of 13 accepted of 15 samples"), std::string::npos)
      << of_thinned;
  EXPECT_NE(of_thinned.find("thinned since: 3 of 15 samples kept\n"), std::string::npos)
      << of_thinned;
  measurement.clock_after_mhz = 1410;
  measurement.device = DeviceState{
      .temperature_c = 62.4, .power_w = 310, .memory_clock_mhz = 1593, .throttle_reasons = 0x204};
  const std::string of_gpu = AnswerText(spec, outcome);
  EXPECT_NE(of_gpu.find("device: 1410 MHz, memory 1593 MHz, at most 62 C and 310 W, throttle "
                        "reasons: software power cap, 0x200\n"),
            std::string::npos)
      << of_gpu;
}

}  // namespace
}  // namespace loopfleet::client
