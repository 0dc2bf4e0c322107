#include "client/job_line.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loopfleet::client {
namespace {

Failure FailureOf(std::string_view line) {
  const auto parsed = ParseJobLine(line);
  EXPECT_FALSE(parsed.has_value()) << line;
  return parsed ? Failure{} : parsed.error().failure;
}

constexpr std::string_view kSmallest =
    R"({"benchmark": "benchmark://mm-v0/mm64_64_64", "actions": []})";

TEST(JobLineTest, ReadsTheSmallestJob) {
  const auto spec = ParseJobLine(kSmallest);
  ASSERT_TRUE(spec.has_value()) << spec.error().failure.message;
  EXPECT_EQ(*spec, (JobSpec{.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm64_64_64"}}));
}

TEST(JobLineTest, ReadsEveryField) {
  const auto spec = ParseJobLine(
      R"({"ir": "v:a\n", "actions": ["down", "split_16"], "dialect": "agent", "rules": "loop_nest",
          "on_illegal": "skip", "merge_all_first": true, "device": "cuda", "labels": ["big", "new"],
          "affinity": "run1", "threads": 2, "cache": "cold", "priority": -3, "precision": 0.01,
          "budget_ms": 10, "cut_above_ns": 5000, "deadline_s": 60, "fresh": true, "max_age_s": 7.5,
          "min_grade": "B", "tag": {"step": [1, 2]}})");
  ASSERT_TRUE(spec.has_value()) << spec.error().failure.message;
  EXPECT_EQ(*spec, (JobSpec{.source = looptree::IrText{"v:a\n"},
                            .actions = {looptree::Down{}, looptree::Split{.factor = 16}},
                            .rules = looptree::RuleSet::kLoopNest,
                            .on_illegal = looptree::OnIllegal::kSkip,
                            .merge_all_first = true,
                            .dialect = looptree::Dialect::kAgent,
                            .device = DeviceRequest::kCuda,
                            .freshness = Freshness::kMeasureAgain,
                            .tag = R"({"step":[1,2]})",
                            .priority = -3,
                            .threads = 2,
                            .cache = CacheState::kCold,
                            .labels = {"big", "new"},
                            .affinity = "run1",
                            .precision = 0.01,
                            .budget_ms = 10,
                            .cut_above_ns = 5000,
                            .deadline_s = 60,
                            .max_age_s = 7.5,
                            .min_grade = Grade::kB}));
  // JobLine writes a line that parses to the same job.
  EXPECT_EQ(ParseJobLine(JobLine(*spec)).value(), *spec);
}

TEST(JobLineTest, WritesOnlyWhatDiffersFromADefault) {
  const auto spec = ParseJobLine(kSmallest).value();
  EXPECT_EQ(JobLine(spec), R"({"benchmark":"benchmark://mm-v0/mm64_64_64","actions":[]})");
}

TEST(JobLineTest, ATagThatIsNotJsonIsAText) {
  JobSpec spec = ParseJobLine(kSmallest).value();
  spec.tag = "run {4";
  EXPECT_EQ(ParseJobLine(JobLine(spec)).value().tag, R"("run {4")");
}

TEST(JobLineTest, EverySetOfRulesHasAName) {
  using looptree::RuleSet;
  for (const auto& [rules, name] : {std::pair{RuleSet::kLoopNest, "loop_nest"},
                                    std::pair{RuleSet::kLoopNest58, "loop_nest_58"}}) {
    JobSpec spec = ParseJobLine(kSmallest).value();
    spec.rules = rules;
    EXPECT_NE(JobLine(spec).find(fmt::format(R"("rules":"{}")", name)), std::string::npos)
        << JobLine(spec);
    EXPECT_EQ(ParseJobLine(JobLine(spec)).value(), spec);
  }
}

TEST(JobLineTest, NamesTheNearestFieldForAnUnknownOne) {
  const Failure failure = FailureOf(R"({"benchmark": "x", "actons": []})");
  EXPECT_EQ(failure.code, FailureCode::kMalformed);
  EXPECT_EQ(failure.message, "unknown field 'actons'; nearest: actions");
  EXPECT_EQ(FailureOf(R"({"\u001b[2J": 1})").message, R"(unknown field '\x1b[2J')");
}

TEST(JobLineTest, NamesTheNearestActionForAnUnknownOneAndKeepsWhatWasGiven) {
  const auto parsed =
      ParseJobLine(R"({"benchmark": "b", "actions": ["down", "splt_4"], "tag": "mine"})");
  ASSERT_FALSE(parsed.has_value());
  const RejectedJob& rejected = parsed.error();
  EXPECT_EQ(rejected.failure.code, FailureCode::kInvalidAction);
  EXPECT_EQ(rejected.failure.action_index, 1u);
  EXPECT_NE(rejected.failure.message.find("split_4"), std::string::npos)
      << rejected.failure.message;
  EXPECT_EQ(rejected.benchmark, "b");
  EXPECT_EQ(rejected.actions, (std::vector<std::string>{"down", "splt_4"}));
  EXPECT_EQ(rejected.tag, R"("mine")");
}

TEST(JobLineTest, SaysWhatIsWrongWithALine) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "not JSON"},
      {"{", "not JSON"},
      {R"({"benchmark": "x", "actions": []} trailing)", "not JSON"},
      {R"({"benchmark": "x", "actions": [], "priority": 1e999})", "not JSON"},
      {"[1]", "a job is a JSON object, not array"},
      {"{}", "either 'benchmark' or 'ir'"},
      {R"({"benchmark": "x", "ir": "y", "actions": []})", "either 'benchmark' or 'ir'"},
      {R"({"benchmark": "x"})", "a job needs 'actions'"},
      {R"({"benchmark": 5, "actions": []})", "'benchmark' must be a string, not number"},
      {R"({"benchmark": "x", "actions": "up"})",
       "'actions' must be an array of strings, not string"},
      {R"({"benchmark": "x", "actions": ["up", 3]})", "'actions'[1] must be a string, not number"},
      {R"({"benchmark": "x", "actions": [], "fresh": 1})",
       "'fresh' must be true or false, not number"},
      {R"({"benchmark": "x", "actions": [], "threads": 0})",
       "field 'threads' is 0; from 1 to 1024"},
      {R"({"benchmark": "x", "actions": [], "threads": 1.5})",
       "'threads' must be a whole number from 1 to 1024, not 1.5"},
      {R"({"benchmark": "x", "actions": [], "threads": 99999999999999999999})",
       "'threads' must be a whole number from 1 to 1024, not 1e+20"},
      {R"({"benchmark": "x", "actions": [], "threads": "2"})",
       "'threads' must be a whole number, not string"},
      {R"({"benchmark": "x", "actions": [], "priority": 1e1})",
       "'priority' must be a whole number from -100 to 100, not 10.0"},
      {R"({"benchmark": "x", "actions": [], "priority": 3000000000})",
       "'priority' must be a whole number from -100 to 100, not 3000000000"},
      {R"({"benchmark": "x", "actions": [], "cut_above_ns": -1})",
       "'cut_above_ns' must be a whole number from 0"},
      {R"({"benchmark": "x", "actions": [], "deadline_s": -1})",
       "'deadline_s' must not be negative"},
      {R"({"benchmark": "x", "actions": [], "device": "gpu"})",
       "'device' must be by_benchmark or cpu or cuda or any"},
      {R"({"benchmark": "x", "actions": [], "rules": "loopnest"})", "nearest: loop_nest"},
      {R"({"benchmark": "x", "actions": [], "actions": []})", "the field 'actions' is given twice"},
  };
  for (const auto& [line, wanted] : cases) {
    const Failure failure = FailureOf(line);
    EXPECT_EQ(failure.code, FailureCode::kMalformed) << line;
    EXPECT_NE(failure.message.find(wanted), std::string::npos) << line << "\n" << failure.message;
  }
}

TEST(JobLineTest, BoundsTheLineItsNestingAndItsActions) {
  EXPECT_EQ(FailureOf(std::string(kMaxLineBytes + 1, ' ')).code, FailureCode::kMalformed);
  const std::string deep = fmt::format(R"({{"benchmark": "x", "actions": [], "tag": {}{}}})",
                                       std::string(400'000, '['), std::string(400'000, ']'));
  EXPECT_NE(FailureOf(deep).message.find("nested deeper"), std::string::npos);
  std::string many = R"({"benchmark": "x", "actions": ["up")";
  for (int i = 0; i < 1024; ++i) many += R"(,"up")";
  EXPECT_EQ(FailureOf(many + "]}").code, FailureCode::kLimitActions);
}

TEST(JobLineTest, KeepsBytesThatAreNotUtf8OutOfMessages) {
  const auto parsed = ParseJobLine("{\"benchmark\": \"\xff\xfe\", \"actions\": []}");
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().failure.code, FailureCode::kMalformed);
}

TEST(JobLine, ABenchmarkNeedsNoScheme) {
  EXPECT_EQ(FullUri("mm-v0/mm64_64_64"), "benchmark://mm-v0/mm64_64_64");
  EXPECT_EQ(FullUri("generator://csmith-v0/7"), "generator://csmith-v0/7");
  for (const char* other : {"mm64_64_64", "mm/mm64_64_64", "-v0/x", "mm-v/x", "mm-v0x/x", "mm-v0/",
                            "v:a\n/-v0/x", "mm-v0/a b", ""}) {
    EXPECT_EQ(FullUri(other), other);  // refused later, if it is nothing else
  }
  const auto job = ParseJobLine(R"({"benchmark": "mm-v0/mm64_64_64", "actions": []})");
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(std::get<looptree::BenchmarkUri>(job->source).text, "benchmark://mm-v0/mm64_64_64");
}

}  // namespace
}  // namespace loopfleet::client
