#include "common/looptree/actions/action.h"

#include <gtest/gtest.h>

namespace loopfleet::looptree {
namespace {

TEST(Action, NamesAndBack) {
  for (const char* name : {"toggle_mode", "toggle_thread", "split", "up", "down", "swap_up",
                           "swap_down", "split_2", "split_1024", "split_9223372036854775807",
                           "merge", "unroll", "vectorize", "undo", "dummy"}) {
    const auto action = ParseAction(name);
    ASSERT_TRUE(action.has_value()) << name;
    EXPECT_EQ(ActionName(*action), name);
  }
  EXPECT_EQ(*ParseAction("undo_action"), Action{Undo{}});
}

TEST(Action, NamesOfAListAreInItsOrder) {
  const auto actions = ParseActionList("down,split_4,up");
  ASSERT_TRUE(actions.has_value());
  EXPECT_EQ(ActionNames(*actions), (std::vector<std::string>{"down", "split_4", "up"}));
}

TEST(Action, BadNamesOfferTheNearest) {
  const auto action = ParseAction("splt_4");
  ASSERT_FALSE(action.has_value());
  EXPECT_EQ(action.error().code, RejectionCode::kInvalidAction);
  EXPECT_EQ(action.error().message, "unknown action 'splt_4'; nearest: split_4");
  for (const char* name : {"", "split_", "split_0", "split_1", "split_-2", "split_+4",
                           "split_1_000", "split_04", "split_9223372036854775808", "UP", "up "}) {
    EXPECT_FALSE(ParseAction(name).has_value()) << name;
  }
}

TEST(Action, ASplitFactorOutOfRangeHasTheNearest) {
  EXPECT_EQ(ParseAction("split_1").error().message,
            "action 'split_1': a split factor is from 2 to 9223372036854775807; nearest: split_2");
  EXPECT_EQ(ParseAction("split_99999999999999999999999").error().message,
            "action 'split_99999999999999999999999': a split factor is from 2 to "
            "9223372036854775807; nearest: split_9223372036854775807");
  EXPECT_EQ(ParseAction("split_016").error().message,
            "unknown action 'split_016'; nearest: split_16");
  EXPECT_EQ(ParseAction("DOWN").error().message, "unknown action 'DOWN'; nearest: down");
}

TEST(Action, ListsNameTheBadEntry) {
  const auto actions = ParseActionList(" down, swap_up ,split_16");
  ASSERT_TRUE(actions.has_value());
  EXPECT_EQ(*actions, (std::vector<Action>{Down{}, SwapUp{}, Split{16}}));
  EXPECT_TRUE(ParseActionList(" ")->empty());
  const auto bad = ParseActionList("down,,up");
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().action_index, 1u);
}

}  // namespace
}  // namespace loopfleet::looptree
