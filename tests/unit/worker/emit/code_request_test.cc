#include "worker/emit/code_request.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

std::string ProblemOf(std::string_view line) {
  const auto spec = ParseCodeRequest(line);
  return spec.has_value() ? "" : spec.error().message;
}

TEST(CodeRequest, TakesWhatMakesTheTree) {
  const auto spec = ParseCodeRequest(
      R"({"benchmark": "benchmark://mm-v0/mm8_8_8", "actions": ["down", "split_4"],
          "rules": "loop_nest", "on_illegal": "skip", "merge_all_first": true, "threads": 2,
          "dialect": "agent", "priority": 3, "tag": {"a": 1}})");
  ASSERT_TRUE(spec.has_value()) << spec.error().message;
  EXPECT_EQ(std::get<looptree::BenchmarkUri>(spec->source).text, "benchmark://mm-v0/mm8_8_8");
  EXPECT_EQ(spec->actions,
            (std::vector<looptree::Action>{looptree::Down{}, looptree::Split{.factor = 4}}));
  EXPECT_EQ(spec->rules, looptree::RuleSet::kLoopNest);
  EXPECT_EQ(spec->on_illegal, looptree::OnIllegal::kSkip);
  EXPECT_EQ(spec->dialect, looptree::Dialect::kAgent);
  EXPECT_TRUE(spec->merge_all_first);
  EXPECT_EQ(spec->threads, 2U);
}

TEST(CodeRequest, TakesAProgramAsText) {
  const auto spec = ParseCodeRequest(R"({"ir": "v:m\n", "actions": []})");
  ASSERT_TRUE(spec.has_value());
  EXPECT_EQ(std::get<looptree::IrText>(spec->source).text, "v:m\n");
}

TEST(CodeRequest, NamesWhatIsWrong) {
  EXPECT_NE(ProblemOf("down"), "");
  EXPECT_NE(ProblemOf("[]").find("object"), std::string::npos);
  EXPECT_NE(ProblemOf(R"({"actions": []})").find("'benchmark' or 'ir'"), std::string::npos);
  EXPECT_NE(ProblemOf(R"({"benchmark": "x"})").find("'actions'"), std::string::npos);
  EXPECT_NE(ProblemOf(R"({"benchmark": "x", "actions": ["splt_4"]})").find("nearest: split_4"),
            std::string::npos);
  EXPECT_NE(ProblemOf(R"({"benchmark": "x", "actions": [], "rules": "loopnest"})")
                .find("nearest: loop_nest"),
            std::string::npos);
  EXPECT_NE(ProblemOf(R"({"benchmark": 7, "actions": []})"), "");
  EXPECT_NE(ProblemOf(R"({"benchmark": "x", "actions": [], "threads": 0})"), "");
}

}  // namespace
}  // namespace loopfleet::worker
