// Every schedule of a program computes the same outputs.

#include <gtest/gtest.h>

#include <cmath>

#include "common/looptree/interpreter/interpret.h"
#include "tests/unit/looptree/random_walk.h"

namespace loopfleet::looptree {
namespace {

// Small integers make sums exact, and elementwise functions get the same operands under every
// schedule, so results are bitwise equal.
void ExpectSameOutputs(const LoopTree& tree, const LoopTree& start, SplitMix64& random) {
  const auto inputs = IntegerInputs(tree.program(), random);
  const auto expected = Interpret(start, inputs);
  const auto actual = Interpret(tree, inputs);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t o = 0; o < actual.size(); ++o) {
    ASSERT_EQ(actual[o].size(), expected[o].size());
    for (std::size_t i = 0; i < actual[o].size(); ++i) {
      if (std::isnan(actual[o][i]) && std::isnan(expected[o][i])) continue;  // log of a negative
      ASSERT_EQ(actual[o][i], expected[o][i]) << "output " << o << ", element " << i << " of\n"
                                              << TreeText(tree, {});
    }
  }
}

TEST(MeaningProperty, WalksOfDialectAgentComputeTheUnscheduledProgram) {
  constexpr int kWalks = 60;
  SplitMix64 random(41);
  std::size_t changed = 0;
  for (const auto& [name, benchmark] : KindsToWalk()) {
    for (const RuleSet rules : kAllRuleSets) {
      SCOPED_TRACE(testing::Message() << name << ", rules " << NameOf(rules));
      for (int w = 0; w < kWalks; ++w) {
        const AgentWalk walk = Walked(benchmark, rules, 5 + w % 30, random);
        changed += TreeText(walk.tree(), {}) != TreeText(benchmark.start, {});
        ASSERT_NO_FATAL_FAILURE(ExpectSameOutputs(walk.tree(), benchmark.start, random));
      }
    }
  }
  EXPECT_GT(changed, 1000u);  // many walks change the tree
}

TEST(MeaningProperty, WalksOfDialectSimpleComputeTheUnscheduledProgram) {
  SplitMix64 random(42);
  for (const char* target : {"cpu", "cuda"}) {
    for (const char* length : {"1", "2", "3", "7", "64", "97", "100", "251"}) {
      const Benchmark benchmark =
          Opened(std::string("benchmark://loop_tool-") + target + "-v0/" + length);
      for (int w = 0; w < 40; ++w) {
        const LoopTree tree = WalkedSimple(benchmark, 10 + 4 * w, random);
        ASSERT_NO_FATAL_FAILURE(ExpectSameOutputs(tree, benchmark.start, random));
      }
    }
  }
}

}  // namespace
}  // namespace loopfleet::looptree
