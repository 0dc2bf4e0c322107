#include "coordinator/job_view.h"

#include <gtest/gtest.h>

namespace loopfleet::coordinator {
namespace {

storage::StoredJob Asked(std::vector<looptree::Action> actions) {
  return {.spec = {.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm8_8_8"},
                   .actions = std::move(actions)}};
}

TEST(JobView, ShowsTheTreeAfterEachStep) {
  const Json view =
      JobViewJson({{1}, 2}, Asked({looptree::Down{}, looptree::SwapUp{}, looptree::Split{4}}));
  EXPECT_EQ(view["job"], "1.2");
  EXPECT_EQ(view["state"], "unfinished");
  EXPECT_TRUE(view["outcome"].is_null());
  ASSERT_EQ(view["trail"].size(), 3U);
  EXPECT_EQ(view["trail"][1]["action"], "swap_up");
  EXPECT_NE(view["trail"][1]["loop_tree"], view["trail"][2]["loop_tree"]);
  EXPECT_TRUE(view["loop_tree"].get<std::string>().find("for k in 2") != std::string::npos)
      << view["loop_tree"];
}

TEST(JobView, AnIllegalActionEndsTheTrail) {
  const Json view = JobViewJson({{1}, 0}, Asked({looptree::Up{}, looptree::Down{}}));
  ASSERT_EQ(view["trail"].size(), 1U);
  EXPECT_EQ(view["trail"][0]["legal"], false);
  EXPECT_TRUE(view["loop_tree"].is_null());
}

TEST(JobView, ASkippedOneDoesNot) {
  auto job = Asked({looptree::Up{}, looptree::Down{}});
  job.spec.on_illegal = looptree::OnIllegal::kSkip;
  const Json view = JobViewJson({{1}, 0}, job);
  ASSERT_EQ(view["trail"].size(), 2U);
  EXPECT_FALSE(view["loop_tree"].is_null());
}

TEST(JobView, ShowsSoManyTreesAndEveryAction) {
  std::vector<looptree::Action> actions;
  for (int i = 0; i < 1024; ++i) {
    actions.emplace_back(looptree::Down{});
    actions.emplace_back(looptree::Up{});
  }
  actions.resize(1024);
  const Json view = JobViewJson({{1}, 0}, Asked(actions));
  ASSERT_EQ(view["trail"].size(), 1024U);
  EXPECT_FALSE(view["trail"][0]["loop_tree"].is_null());
  EXPECT_TRUE(view["trail"][1023]["loop_tree"].is_null());
  EXPECT_LT(view.dump().size(), 2 * kMaxStepBytes);
}

TEST(JobView, CommandsSurviveAShell) {
  storage::StoredJob job{.spec = {.source = looptree::IrText{"it's $(not) `run`"}}};
  const Json view = JobViewJson({{1}, 0}, job);
  EXPECT_EQ(
      view["commands"][0]["command"],
      R"(echo '{"ir":"it'\''s $(not) `run`","actions":[],"every_step":true}' | loopfleet replay)");
  EXPECT_TRUE(view["loop_tree"].is_null());
}

}  // namespace
}  // namespace loopfleet::coordinator
