#include "client/outcome_json.h"

#include <gtest/gtest.h>

#include <limits>

namespace loopfleet::client {
namespace {

Outcome Measured() {
  Outcome outcome{.job = {{12}, 3},
                  .sequence = 1,
                  .source = OutcomeSource::kMeasured,
                  .attempts = 1,
                  .worker = "host-1",
                  .benchmark = looptree::BenchmarkUri{"benchmark://mm-v0/mm64_64_64"},
                  .actions = {looptree::Down{}, looptree::SwapUp{}},
                  .tag = R"({"step":4})"};
  Evaluation& evaluation = outcome.evaluation;
  evaluation.verdict = Measurement{.elapsed_ns = 5210.5,
                                   .elapsed_low_ns = 5201.5,
                                   .elapsed_high_ns = 5233.0,
                                   .elapsed_min_ns = 5198.0,
                                   .elapsed_mean_ns = 5244.25,
                                   .spread = 0.004,
                                   .grade = Grade::kA,
                                   .iterations_per_sample = 11,
                                   .samples_ns = {5198.0, 5210.5},
                                   .sample_flags = {0, 1}};
  evaluation.subject = SubjectKey::Parse("9f000000000000000000000000000001");
  evaluation.flop_count = 524288;
  evaluation.conditions = Conditions{.hardware = {.hardware_class = "cpu:x", .isa = "avx2"},
                                     .compiler = {.llvm = "19.1.7", .tier = "general"},
                                     .policy = "fixed15x60us",
                                     .isolation = "process+rlimits"};
  evaluation.code_hash = "abc";
  evaluation.stages[Stage::kCompile] = Nanos(1234);
  return outcome;
}

TEST(OutcomeJsonTest, ShowsAMeasurementFieldByField) {
  const Json json = OutcomeJson(Measured());
  EXPECT_EQ(json["benchmark"], "benchmark://mm-v0/mm64_64_64");
  EXPECT_EQ(json["actions"], (Json{"down", "swap_up"}));
  EXPECT_EQ(json["job"], "12.3");
  EXPECT_EQ(json["tree_key"], "9f000000000000000000000000000001");
  EXPECT_EQ(json["status"], "ok");
  EXPECT_FALSE(json.contains("error"));
  EXPECT_EQ(json["elapsed_ns"], 5210.5);
  EXPECT_EQ(json["elapsed_low_ns"], 5201.5);
  EXPECT_EQ(json["elapsed_high_ns"], 5233.0);
  EXPECT_EQ(json["elapsed_min_ns"], 5198.0);
  EXPECT_EQ(json["elapsed_mean_ns"], 5244.25);
  EXPECT_EQ(json["samples_ns"], (Json{5198.0, 5210.5}));
  EXPECT_EQ(json["sample_flags"], (Json{0, 1}));
  EXPECT_TRUE(json["samples_before_thinning"].is_null());
  EXPECT_DOUBLE_EQ(json["gflop_per_second"].get<double>(), 524288 / 5210.5);
  EXPECT_EQ(json["flop_count"], 524288);
  EXPECT_EQ(json["spread"], 0.004);
  EXPECT_EQ(json["grade"], "A");
  EXPECT_EQ(json["source"], "measured");
  EXPECT_EQ(json["attempts"], 1);
  EXPECT_EQ(json["worker"], "host-1");
  EXPECT_EQ(json["hardware"]["class"], "cpu:x");
  EXPECT_EQ(json["hardware"]["isa"], "avx2");
  EXPECT_EQ(json["compiler"]["llvm"], "19.1.7");
  EXPECT_EQ(json["compiler"]["code_hash"], "abc");
  EXPECT_EQ(json["threads"], 1);
  EXPECT_EQ(json["cache"], "warm");
  EXPECT_EQ(json["isolation"], "process+rlimits");
  EXPECT_EQ(json["stages_ns"]["compile"], 1234);
  EXPECT_EQ(json["tag"], (Json{{"step", 4}}));
}

TEST(OutcomeJsonTest, ShowsWhatAGpusSensorsSaid) {
  Outcome outcome = Measured();
  EXPECT_TRUE(OutcomeJson(outcome)["device"].is_null());
  std::get<Measurement>(outcome.evaluation.verdict).device =
      DeviceState{.temperature_c = 62, .power_w = 0, .throttle_reasons = 0x41};
  EXPECT_EQ(OutcomeJson(outcome)["device"],
            (Json{{"temperature_c", 62.0},
                  {"power_w", nullptr},
                  {"memory_clock_mhz", nullptr},
                  {"throttle_reasons", {"idle", "hardware thermal slowdown"}}}));
}

TEST(OutcomeJsonTest, SaysWhatRetentionTookAway) {
  Outcome outcome = Measured();
  auto& measurement = std::get<Measurement>(outcome.evaluation.verdict);
  measurement.samples_ns = {5198.0};
  measurement.sample_flags = {0};
  measurement.thinned = Thinned{.samples_before = 15, .accepted_before = 13};
  const Json json = OutcomeJson(outcome);
  EXPECT_EQ(json["samples_ns"], (Json{5198.0}));
  EXPECT_EQ(json["samples_before_thinning"], 15);
  EXPECT_EQ(json["accepted_samples"], 13) << "of those that the median is of";
}

TEST(OutcomeJsonTest, GivesAFailureNoFigures) {
  Outcome outcome = Measured();
  outcome.evaluation.verdict = Failure{.code = FailureCode::kRunCrash, .message = "", .signal = 11};
  const Json json = OutcomeJson(outcome);
  EXPECT_EQ(json["status"], "failed");
  EXPECT_EQ(json["error"]["code"], "RUN_CRASH");
  EXPECT_EQ(json["error"]["message"], "a signal killed the kernel") << "never an empty text";
  EXPECT_EQ(json["error"]["signal"], 11);
  EXPECT_EQ(json["error"]["retryable"], false);
  EXPECT_TRUE(json["error"].at("action_index").is_null());
  for (const char* field : {"elapsed_ns", "elapsed_low_ns", "elapsed_high_ns", "elapsed_min_ns",
                            "elapsed_mean_ns", "gflop_per_second", "spread", "grade"}) {
    EXPECT_TRUE(json.at(field).is_null()) << field;
  }
  EXPECT_TRUE(json["samples_ns"].empty());
}

TEST(OutcomeJsonTest, ShowsARejectedJobAsItWasGiven) {
  const Json json = OutcomeJson(RejectedJob{
      .failure = {.code = FailureCode::kInvalidAction, .message = "no", .action_index = 0},
      .benchmark = "b",
      .actions = {"splt_4"},
      .tag = "7"});
  EXPECT_EQ(json["benchmark"], "b");
  EXPECT_EQ(json["actions"], (Json{"splt_4"}));
  EXPECT_EQ(json["status"], "failed");
  EXPECT_EQ(json["error"]["action_index"], 0);
  EXPECT_TRUE(json["gflop_per_second"].is_null());
  EXPECT_TRUE(json["source"].is_null());
  EXPECT_EQ(json["tag"], 7);
}

TEST(OutcomeJsonTest, ATagThatIsNotJsonIsAText) {
  Outcome outcome = Measured();
  outcome.tag = "run {4";
  EXPECT_EQ(Json::parse(Dump(OutcomeJson(outcome)))["tag"], "run {4");
}

TEST(OutcomeJsonTest, NeverWritesWhatIsNotJson) {
  Outcome outcome = Measured();
  outcome.worker = "\xff";
  auto measurement = outcome.evaluation.measurement();
  measurement.elapsed_mean_ns = std::numeric_limits<double>::infinity();
  outcome.evaluation.verdict = measurement;
  const std::string text = Dump(OutcomeJson(outcome));
  const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(parsed.is_discarded()) << text;
  EXPECT_TRUE(parsed["elapsed_mean_ns"].is_null());
}

}  // namespace
}  // namespace loopfleet::client
