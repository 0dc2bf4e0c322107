#include "client/profile_text.h"

#include <gtest/gtest.h>

#include <sstream>

#include "common/job/profile_rows.h"

namespace loopfleet::client {
namespace {

// for m : L0, for n : L1, for k : L2, %2 multiply : L3, %3 add : L4, then %4 write in loops of its
// own.
JobSpec SomeJob(ProfileLevel level) {
  JobSpec spec{.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm4_8_16"}};
  spec.profile = level;
  return spec;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(ProfileText, ARowForEachNodeAndPart) {
  const Profile profile{
      .level = ProfileLevel::kLines,
      .overhead = 0.02,
      .lines = {{.place = {.ref = 0, .part = ProfilePart::kPack}, .share = 0.1, .samples = 10},
                {.place = {.ref = 0}, .share = 0.05, .samples = 5},
                {.place = {.ref = 1}, .share = 0.15, .samples = 15},
                {.place = {.ref = 2}, .share = 0.2, .samples = 20},
                {.place = {.ref = 3}, .fused_into = 4},
                {.place = {.ref = 4}, .share = 0.4, .low = 0.3, .high = 0.5, .samples = 40},
                {.place = {.ref = 4, .part = ProfilePart::kCombine}, .share = 0.05, .samples = 5},
                {.place = {.part = ProfilePart::kOutside}, .share = 0.05, .samples = 5}}};
  const auto rows = ProfileRows(SomeJob(ProfileLevel::kLines), profile);
  ASSERT_GT(rows.size(), 8U);
  EXPECT_EQ(rows[0].text, "(packs inputs for L0)");
  EXPECT_TRUE(rows[1].text.starts_with("for m in 4 : L0")) << rows[1].text;
  EXPECT_DOUBLE_EQ(rows[1].total, 0.95);
  EXPECT_DOUBLE_EQ(rows[3].total, 0.65);
  EXPECT_TRUE(rows[4].text.ends_with("(with %3)")) << rows[4].text;
  EXPECT_DOUBLE_EQ(rows[5].total, 0.45);
  EXPECT_EQ(rows[6].text, "   (combines and stores %3)");
  EXPECT_FALSE(rows[7].is_known) << "nodes of which the profile says nothing stand in their place";
  EXPECT_EQ(rows[rows.size() - 1].text, "(outside of all)");
  const std::string text = ProfileText(SomeJob(ProfileLevel::kLines), profile);
  EXPECT_NE(text.find("40.0   30.0 to  50.0  ████████\n"), std::string::npos) << text;
  EXPECT_NE(text.find("by lines: 100 samples of the kernel, +2.0 % of its time; no figure"),
            std::string::npos)
      << text;
}

TEST(ProfileText, RootsAndLoopsHoldAllInside) {
  Profile profile{.level = ProfileLevel::kLoops,
                  .note = "counting L2\x1b as well",
                  .lines = {{.place = {.ref = 0}, .share = 0.9, .cycles = 9000, .entries = 1},
                            {.place = {.ref = 1}, .share = 0.8, .cycles = 8000, .entries = 4},
                            {.place = {.part = ProfilePart::kOutside}, .share = 0.1}}};
  const auto rows = ProfileRows(SomeJob(ProfileLevel::kLoops), profile);
  EXPECT_DOUBLE_EQ(rows[0].total, 0.9);
  EXPECT_DOUBLE_EQ(rows[1].total, 0.8);
  EXPECT_FALSE(rows[2].is_known);
  const auto lines = LinesOf(ProfileText(SomeJob(ProfileLevel::kLoops), profile));
  EXPECT_EQ(lines.size(), rows.size() + 3);
  EXPECT_EQ(lines.back(), R"(counting L2\x1b as well)");
}

TEST(ProfileText, NothingOfATreeThatThereIsNot) {
  JobSpec spec = SomeJob(ProfileLevel::kRoots);
  spec.actions = {looptree::SwapUp{}, looptree::Split{1'000'000}};
  EXPECT_TRUE(ProfileRows(spec, {.level = ProfileLevel::kRoots}).empty());
  const Profile beyond{.level = ProfileLevel::kRoots, .lines = {{.place = {.ref = 900}}}};
  for (const ProfileRow& row : ProfileRows(SomeJob(ProfileLevel::kRoots), beyond)) {
    EXPECT_FALSE(row.is_known);
  }
}

}  // namespace
}  // namespace loopfleet::client
