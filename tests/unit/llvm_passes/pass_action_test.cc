#include "common/llvm_passes/pass_action.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace loopfleet::passes {
namespace {

TEST(PassAction, HasCompilerGyms124InItsOrder) {
  const auto all = ActionsOf(ActionSpace::kAll);
  ASSERT_EQ(all.size(), 124U);
  EXPECT_EQ(all[0].flag, "-add-discriminators");
  EXPECT_EQ(all[7].text, "no-op-module");
  EXPECT_EQ(all[7].kind, ActionKind::kNoop);
  EXPECT_EQ(all[57].text, "function(loop-mssa(licm<allowspeculation>))");
  EXPECT_EQ(all[82].kind, ActionKind::kRenamed);
  EXPECT_EQ(all[123].flag, "-mergereturn");
  std::set<std::string_view> flags, texts;
  for (const PassAction& action : all) {
    flags.insert(action.flag);
    texts.insert(action.text);
  }
  EXPECT_EQ(flags.size(), 124U);
  EXPECT_EQ(texts.size(), 119U);
}

TEST(PassAction, DistinctActionsDoSomethingAndKeepTheOriginalsFlag) {
  const auto distinct = ActionsOf(ActionSpace::kDistinct);
  ASSERT_EQ(distinct.size(), 118U);
  std::set<std::string_view> texts;
  for (const PassAction& action : distinct) texts.insert(action.text);
  EXPECT_EQ(texts.size(), 118U);
  EXPECT_FALSE(texts.contains("no-op-module"));
  const auto has = [&](std::string_view flag) {
    return std::ranges::find(distinct, flag, &PassAction::flag) != distinct.end();
  };
  EXPECT_TRUE(has("-dce"));
  EXPECT_FALSE(has("-die"));
  EXPECT_TRUE(has("-loop-unswitch"));  // a substitute that is nobody's double
}

TEST(PassAction, SpacesHaveNames) {
  for (const ActionSpace space :
       {ActionSpace::kAll, ActionSpace::kDistinct, ActionSpace::kPipelines}) {
    EXPECT_EQ(ParseActionSpace(ActionSpaceName(space)), space);
  }
  EXPECT_EQ(ParseActionSpace("PassesSome"), std::nullopt);
}

}  // namespace
}  // namespace loopfleet::passes
