#include "client/cli/text/batch_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loopfleet::client {
namespace {

Outcome Took(std::uint32_t index, double ns, const std::string& uri = "benchmark://mm-v0/mm4_4_4") {
  Outcome outcome{.job = {BatchId{7}, index}, .benchmark = looptree::BenchmarkUri{uri}};
  outcome.evaluation.verdict = Measurement{.elapsed_ns = ns, .grade = Grade::kB};
  outcome.evaluation.conditions = Conditions{.hardware = {.hardware_class = "cpu:x"}};
  outcome.evaluation.code_hash = fmt::format("{}", ns);
  outcome.evaluation.flop_count = 128;
  return outcome;
}

Outcome Failed(std::uint32_t index, FailureCode code) {
  Outcome outcome{.job = {BatchId{7}, index}};
  outcome.evaluation.verdict = Failure{.code = code};
  return outcome;
}

TEST(BatchReport, CountsAndSaysWhatToDoAboutFailures) {
  BatchReport report;
  report.Add(Took(0, 100));
  Outcome stored = Took(1, 200);
  stored.source = OutcomeSource::kStored;
  report.Add(stored);
  report.Add(Failed(2, FailureCode::kRunCrash));
  report.Add(Failed(3, FailureCode::kRunCrash));
  report.Add(Failed(4, FailureCode::kExpired));
  EXPECT_EQ(report.Summary(), "2 ok (1 from the store), 3 failed: 1 EXPIRED, 2 RUN_CRASH");
  EXPECT_NE(
      report.Details().find(fmt::format("RUN_CRASH: {}\n", InfoOf(FailureCode::kRunCrash).advice)),
      std::string::npos);
  EXPECT_NE(report.Details().find("grades: 2 B\n"), std::string::npos);
}

TEST(BatchReport, NamesTheFirstJobOfEachFailure) {
  BatchReport report;
  for (const std::uint32_t index : {4, 5}) {
    Outcome outcome = Failed(index, FailureCode::kRunCrash);
    outcome.evaluation.verdict =
        Failure{.code = FailureCode::kRunCrash, .message = fmt::format("signal {}", index)};
    report.Add(outcome);
  }
  EXPECT_NE(report.Details().find("  job 7.4: signal 4\n"), std::string::npos);
  EXPECT_EQ(report.Details().find("signal 5"), std::string::npos);
  EXPECT_EQ(report.failed().at("RUN_CRASH"), 2U);
}

TEST(BatchReport, AMessageDoesNotSteerTheTerminal) {
  BatchReport report;
  Outcome outcome = Failed(0, FailureCode::kRunCrash);
  outcome.evaluation.verdict = Failure{.code = FailureCode::kRunCrash, .message = "a\x1b[2J"};
  report.Add(outcome);
  EXPECT_NE(report.Details().find(R"(  job 7.0: a\x1b[2J)"), std::string::npos) << report.Details();
  EXPECT_EQ(report.Details().find('\x1b'), std::string::npos);
}

TEST(BatchReport, ShowsTheQuickestOfOneBenchmark) {
  BatchReport report(2);
  for (std::uint32_t i = 0; i < 5; ++i) report.Add(Took(i, 500 - 100.0 * i));
  const Json best = report.ToJson()["best"];
  ASSERT_EQ(best.size(), 2U);
  EXPECT_EQ(best[0]["job"], "7.4");
  EXPECT_EQ(best[0]["elapsed_ns"], 100.0);
  EXPECT_EQ(best[1]["job"], "7.3");
  EXPECT_NE(report.Details().find("7.3"), std::string::npos);
}

TEST(BatchReport, ShowsTheFirstOfEachOfManyBenchmarks) {
  BatchReport report(2);
  for (std::uint32_t i = 0; i < 60; ++i) {
    report.Add(Took(i, 100 + i, fmt::format("benchmark://mm-v0/mm4_4_{}", 4 + i / 2)));
  }
  const std::string text = report.Details();
  EXPECT_NE(text.find("mm4_4_23"), std::string::npos) << text;
  EXPECT_EQ(text.find("7.1 "), std::string::npos) << text;  // slower than 7.0
  EXPECT_NE(text.find("and 10 more"), std::string::npos) << text;
}

Outcome Left(std::uint32_t index, double instructions, const std::string& passes,
             const std::string& uri = "generator://csmith-v0/7") {
  Outcome outcome{.job = {BatchId{7}, index}, .benchmark = looptree::BenchmarkUri{uri}};
  Observed observed;
  observed.values["IrInstructionCount"] = instructions;
  observed.values["commandline"] = fmt::format("opt-19 -passes='{}' in.bc -o out.bc", passes);
  outcome.evaluation.verdict = std::move(observed);
  return outcome;
}

TEST(BatchReport, ShowsThePassesThatLeftTheFewestInstructions) {
  BatchReport report(2);
  report.Add(Left(0, 300, ""));
  report.Add(Left(1, 100, "function(gvn)"));
  report.Add(Left(2, 200, "function(sroa)"));
  report.Add(Left(3, 100, "function(gvn)"));  // the same once more
  EXPECT_EQ(report.Summary(), "4 ok");
  const Json best = report.ToJson()["best"];
  ASSERT_EQ(best.size(), 2U);
  EXPECT_EQ(best[0]["job"], "7.1");
  EXPECT_EQ(best[0]["instructions"], 100.0);
  EXPECT_EQ(best[1]["passes"], "function(sroa)");
  const std::string text = report.Details();
  EXPECT_TRUE(text.starts_with("the fewest instructions:\n")) << text;
  EXPECT_NE(text.find("function(gvn)"), std::string::npos) << text;
  EXPECT_EQ(text.find("7.0"), std::string::npos) << text;
}

TEST(BatchReport, ShowsTheFewestOfEachOfManyPrograms) {
  BatchReport report(2);
  report.Add(Left(0, 300, "function(gvn)"));
  report.Add(Left(1, 100, "", "generator://csmith-v0/8"));
  report.Add(Left(2, 200, "function(gvn)", "generator://csmith-v0/8"));
  const std::string text = report.Details();
  EXPECT_TRUE(text.starts_with("the fewest instructions of each benchmark:\n")) << text;
  EXPECT_NE(text.find("7.0 "), std::string::npos) << text;
  EXPECT_NE(text.find("7.1 "), std::string::npos) << text;
  EXPECT_EQ(text.find("7.2 "), std::string::npos) << text;
}

TEST(BatchReport, OfNothingIsEmpty) {
  const BatchReport report;
  EXPECT_EQ(report.Summary(), "0 ok");
  EXPECT_EQ(report.Details(), "");
}

}  // namespace
}  // namespace loopfleet::client
