#include "storage/sqlite/tables/job_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/storage/record_samples.h"

namespace loopfleet::storage {
namespace {

using looptree::Action;
using looptree::Split;

TEST(JobText, ActionsThatNoRuleAdmitsRoundTripToo) {
  std::vector<Action> actions = FullSpec().actions;
  for (const std::int64_t factor :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1},
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    actions.push_back(Split{factor});
  }
  EXPECT_EQ(ParseActionsText(ActionsText(actions)).value(), actions);
  EXPECT_EQ(ActionsText({looptree::Down{}, looptree::SwapUp{}, Split{4}}), "down,swap_up,split_4");
  EXPECT_EQ(ParseActionsText("").value(), std::vector<Action>{});
}

TEST(JobText, UnknownActionsAreNamed) {
  for (const char* text : {"down,fly", "split_", "split_4x", "split_99999999999999999999"}) {
    EXPECT_FALSE(ParseActionsText(text)) << text;
  }
  EXPECT_NE(ParseActionsText("down,fly").error().message.find("'fly'"), std::string::npos);
}

constexpr WallTime kAccepted{Nanos(1'700'000'000'000'000'001)};

TEST(JobText, DefaultsTakeNoRoom) {
  EXPECT_EQ(OptionsText(PlainSpec(4), kAccepted).value(), std::nullopt);
}

TEST(JobText, OptionsRoundTrip) {
  const std::string text = OptionsText(FullSpec(), kAccepted).value().value();
  JobSpec read;
  StoredOptions options{.spec = read, .accepted_at = {}};
  const Status parsed = ParseOptionsText(text, options);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(options.accepted_at, kAccepted);
  read.source = FullSpec().source;
  read.actions = FullSpec().actions;
  read.tag = FullSpec().tag;
  EXPECT_EQ(read, FullSpec()) << text;
}

// Databases contain these names: they can never change.
TEST(JobText, OptionNamesStay) {
  EXPECT_EQ(
      OptionsText(FullSpec(), kAccepted).value().value(),
      R"({"accepted_at_ns":1700000000000000001,"affinity":"same,worker","budget_ms":12.5,"cache":"cold",)"
      R"("cut_above_ns":18000000000000000000,"deadline_s":60.25,"device":"any",)"
      R"("dialect":"simple","fresh":true,"labels":["gpu","a \"quoted\" one"],)"
      R"("max_age_s":1000000000.0,"merge_all_first":true,"min_grade":"B","on_illegal":"skip",)"
      R"("precision":0.01,"priority":-3,"rules":"loop_nest_58","threads":7})");
}

TEST(JobText, WhatJsonCannotHoldIsRefused) {
  JobSpec spec = PlainSpec(4);
  spec.precision = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(OptionsText(spec, kAccepted).error().kind, ErrorKind::kInvalid);
  spec = PlainSpec(4);
  spec.affinity = "\xff";
  EXPECT_EQ(OptionsText(spec, kAccepted).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(ListText({"\xff"}).error().kind, ErrorKind::kInvalid);
}

TEST(JobText, OptionsOfAnotherVersionAreNotIgnored) {
  JobSpec spec;
  StoredOptions options{.spec = spec, .accepted_at = {}};
  for (const char* text :
       {R"({"colour":"red"})", R"({"device":"tpu"})", R"({"threads":"2"})", "{"}) {
    EXPECT_FALSE(ParseOptionsText(text, options)) << text;
  }
}

}  // namespace
}  // namespace loopfleet::storage
