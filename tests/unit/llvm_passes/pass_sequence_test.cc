#include "common/llvm_passes/pass_sequence.h"

#include <gtest/gtest.h>

namespace loopfleet::passes {
namespace {

std::vector<std::string> Sequence(std::initializer_list<const char*> passes) {
  return {passes.begin(), passes.end()};
}

TEST(PassSequence, PipelinesHaveTheirIds) {
  const std::vector<std::uint16_t> ids = {0, 5};
  const auto texts = CanonicalTexts(ActionSpace::kPipelines, ids);
  ASSERT_TRUE(texts);
  EXPECT_EQ(*texts, Sequence({"default<O0>", "default<Oz>"}));
}

TEST(PassSequence, EveryFlagAndEveryCanonicalTextIsAccepted) {
  for (const ActionSpace space : {ActionSpace::kAll, ActionSpace::kPipelines}) {
    for (const PassAction& action : ActionsOf(space)) {
      EXPECT_EQ(CanonicalText(action.flag).value_or(""), action.text);
      EXPECT_EQ(CanonicalText(action.text).value_or(""), action.text);
    }
  }
}

TEST(PassSequence, EqualPassesHaveEqualTextsAndNothingIsDropped) {
  const auto texts = CanonicalTexts(Sequence({"-die", "-barrier", "-dce"}));
  ASSERT_TRUE(texts);
  EXPECT_EQ(*texts, Sequence({"function(dce)", "no-op-module", "function(dce)"}));
}

TEST(PassSequence, AMistakeIsNamedWithItsIndexAndTheNearestFlag) {
  const auto texts = CanonicalTexts(Sequence({"-gvn", "-simplifcfg"}));
  ASSERT_FALSE(texts);
  EXPECT_EQ(texts.error().action_index, 1U);
  EXPECT_EQ(texts.error().message, "unknown pass '-simplifcfg'; nearest: -simplifycfg");
  const auto unnamed = CanonicalTexts(Sequence({"-gvn", ""}));
  ASSERT_FALSE(unnamed);
  EXPECT_EQ(unnamed.error().action_index, 1U);
  EXPECT_EQ(unnamed.error().message, "a pass without a name");
  const std::vector<std::uint16_t> ids = {0, 1, 118};
  const auto by_id = CanonicalTexts(ActionSpace::kDistinct, ids);
  ASSERT_FALSE(by_id);
  EXPECT_EQ(by_id.error().action_index, 2U);
  EXPECT_EQ(by_id.error().message, "Passes19 has no action 118; its ids are 0 to 117");
}

TEST(PassSequence, TheCommandLineIsOneOfOpt) {
  EXPECT_EQ(CommandLine(Sequence({"function(gvn)", "globaldce"})),
            "opt-19 -passes='function(gvn),globaldce' in.bc -o out.bc");
}

}  // namespace
}  // namespace loopfleet::passes
