// IR text holds a whole tree: parsing gives the same tree, which prints as the same text.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "common/looptree/features/features.h"
#include "common/looptree/tree/key.h"
#include "tests/unit/looptree/random_walk.h"

namespace loopfleet::looptree {
namespace {

void ExpectRoundTrip(const LoopTree& tree) {
  const std::string text = IrTextOf(tree);
  SCOPED_TRACE(text);
  const auto parsed = ParseIr(text);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(IrTextOf(*parsed), text);
  // A view's maps may come in another order, so compare canonical forms, not programs.
  EXPECT_EQ(CanonicalForm(*parsed), CanonicalForm(tree));
  EXPECT_EQ(parsed->schedule(), tree.schedule());
  EXPECT_EQ(TreeText(*parsed, {}), TreeText(tree, {}));
  for (const auto layout : {FeatureLayout::kAgent20, FeatureLayout::kAgent58}) {
    EXPECT_EQ(LoopsTensor(*parsed, 0, layout), LoopsTensor(tree, 0, layout));
    EXPECT_EQ(StrideHistogram(*parsed, layout), StrideHistogram(tree, layout));
  }
}

TEST(IrTextProperty, TreesOfDialectAgentRoundTrip) {
  SplitMix64 random(51);
  for (const auto& [name, benchmark] : KindsToWalk()) {
    SCOPED_TRACE(name);
    for (int w = 0; w < 100; ++w) {
      const AgentWalk walk = Walked(benchmark, RuleSet::kStructural, w % 40, random);
      ASSERT_NO_FATAL_FAILURE(ExpectRoundTrip(walk.tree()));
      if (HasFailure()) return;
    }
  }
}

// The text also holds their non-reusable loops and their thread annotations.
TEST(IrTextProperty, TreesOfDialectSimpleRoundTrip) {
  SplitMix64 random(52);
  for (const char* length : {"1", "100", "1021"}) {
    const Benchmark benchmark = Opened(std::string("benchmark://loop_tool-cpu-v0/") + length);
    for (int w = 0; w < 100; ++w) {
      ASSERT_NO_FATAL_FAILURE(ExpectRoundTrip(WalkedSimple(benchmark, 4 * w, random)));
    }
  }
}

// A chain of `views` views of one tensor. Each has the dimensions of its input, so none needs any
// constraints in the text.
std::string TextOfSilentViews(std::size_t views) {
  constexpr std::size_t kDims = 30;
  std::string text;
  std::string dims;
  std::string loops;
  std::string annotations;
  for (std::size_t dim = 0; dim < kDims; ++dim) {
    text += fmt::format("v:d{}\n", dim);
    dims += fmt::format("{},", dim);
    loops += fmt::format("{};1;0,", dim);
    annotations += ",";
  }
  text += fmt::format("n:2::{}:::0:::::\n", dims);
  for (std::size_t view = 0; view < views; ++view) {
    text += fmt::format("n:3:{},:{}:::0:::::\n", view, dims);
  }
  text += fmt::format("n:1:{},:{}:::0:{}::{}::\n", views, dims, loops, annotations);
  return text + fmt::format("i:0,\no:{},\n", views + 1);
}

TEST(IrTextProperty, WhatCannotBeReadAgainIsRefused) {
  const auto few = ParseIr(TextOfSilentViews(80));
  ASSERT_TRUE(few.has_value()) << few.error().message;
  ASSERT_NO_FATAL_FAILURE(ExpectRoundTrip(*few));
  const auto many = ParseIr(TextOfSilentViews(100));
  ASSERT_FALSE(many.has_value());
  EXPECT_EQ(many.error().code, RejectionCode::kLimitTree);
}

TEST(IrTextProperty, PrioritiesRoundTrip) {
  SplitMix64 random(53);
  for (const auto& [name, benchmark] : KindsToWalk()) {
    SCOPED_TRACE(name);
    for (int w = 0; w < 10; ++w) {
      Schedule schedule = benchmark.start.schedule();
      for (NodeSchedule& node : schedule) {
        node.priority = static_cast<double>(random.Below(9)) / 3 - 1;
      }
      const auto tree = LoopTree::Build(benchmark.start.shared_program(), std::move(schedule));
      ASSERT_TRUE(tree.has_value()) << tree.error().message;
      ASSERT_NO_FATAL_FAILURE(ExpectRoundTrip(*tree));
    }
  }
}

}  // namespace
}  // namespace loopfleet::looptree
