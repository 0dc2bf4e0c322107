#include "worker/evaluation/profile_lines.h"

#include <gtest/gtest.h>

namespace loopfleet::worker {
namespace {

using looptree::TreeRef;

// A root L0 with the loop L1 inside it, panels packed for it, and a second root L5.
std::vector<ProbeSite> SomeSites() {
  return {{.place = {.part = ProfilePart::kOutside}},
          {.place = {.ref = 0, .part = ProfilePart::kPack}, .is_root = true},
          {.place = {.ref = 0}, .is_root = true},
          {.place = {.ref = 1}, .parent = 2, .entries = 10},
          {.place = {.ref = 2}, .parent = 3, .entries = 1000},
          {.place = {.ref = 5}, .is_root = true}};
}

ProbeReading SomeReading(std::uint64_t runs) {
  return {{.ticks = 100'000 * runs, .entries = runs},
          {.ticks = 5'000 * runs, .entries = runs},
          {.ticks = 70'000 * runs, .entries = runs},
          {.ticks = 60'000 * runs, .entries = 10 * runs},
          {},
          {.ticks = 20'000 * runs, .entries = runs}};
}

const ProfileLine& LineOf(const std::vector<ProfileLine>& lines, const ProfilePlace& place) {
  for (const ProfileLine& line : lines) {
    if (line.place == place) return line;
  }
  ADD_FAILURE() << "no line of L" << place.ref;
  return lines.front();
}

TEST(ProfileLines, CountsBecomeSharesOfTheWholeKernel) {
  ProbeReading slow = SomeReading(3);
  slow[5].ticks = 25'000 * 3;
  const std::vector<ProbeReading> readings = {SomeReading(7), slow, SomeReading(4)};
  const auto lines = LinesOfReadings(SomeSites(), {1}, readings);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0].place, (ProfilePlace{.ref = 0, .part = ProfilePart::kPack}));
  EXPECT_DOUBLE_EQ(lines[0].share, 0.05);
  EXPECT_EQ(lines[1].place, (ProfilePlace{.ref = 0}));
  EXPECT_DOUBLE_EQ(lines[1].share, 0.7);
  EXPECT_EQ(lines[2].place, (ProfilePlace{.ref = 1}));
  EXPECT_DOUBLE_EQ(lines[2].share, 0.6);
  EXPECT_DOUBLE_EQ(lines[2].entries, 10);
  EXPECT_DOUBLE_EQ(lines[2].cycles, 60'000);
  EXPECT_EQ(lines[3].place, (ProfilePlace{.ref = 5}));
  EXPECT_DOUBLE_EQ(lines[3].share, 0.2);
  EXPECT_DOUBLE_EQ(lines[3].low, 0.2);
  EXPECT_DOUBLE_EQ(lines[3].high, 0.25);
  EXPECT_EQ(lines[4].place.part, ProfilePart::kOutside);
  EXPECT_NEAR(lines[4].share, 0.05, 1e-12);
  EXPECT_NEAR(lines[4].low, 0, 1e-12);
}

TEST(ProfileLines, TooManyAreDroppedAndCounted) {
  Profile profile{.lines = std::vector<ProfileLine>(kMostProfileLines)};
  KeepMost(profile);
  EXPECT_TRUE(profile.note.empty());
  profile.lines.resize(kMostProfileLines + 3);
  KeepMost(profile);
  EXPECT_EQ(profile.lines.size(), kMostProfileLines);
  EXPECT_EQ(profile.note, "3 of 1027 lines are not kept");
}

TEST(ProfileLines, OneLevelDeeperWhereEntriesAreLong) {
  const std::vector<ProbeReading> readings = {SomeReading(5)};
  // An entry of L1 takes at most 70,000 / 10.
  EXPECT_EQ(LoopsInside(SomeSites(), {}, readings, 4'000), std::set<TreeRef>{1});
  EXPECT_EQ(LoopsInside(SomeSites(), {}, readings, 7'001), std::set<TreeRef>{});
  // One of L2 at most 60,000 / 1,000, and only once L1 was counted.
  EXPECT_EQ(LoopsInside(SomeSites(), {1}, readings, 4'000), std::set<TreeRef>{});
  EXPECT_EQ(LoopsInside(SomeSites(), {1}, readings, 60), std::set<TreeRef>{2});
  EXPECT_DOUBLE_EQ(TicksOfEntry(readings, 3), 6'000);
  EXPECT_DOUBLE_EQ(TicksOfEntry(readings, 4), 0);
}

TEST(ProfileLines, SamplesBelongToTheSpanTheyLieIn) {
  const ProfileMap map{.probes = std::nullopt,
                       .spans = {{.begin = 10, .place = {.part = ProfilePart::kOutside}},
                                 {.begin = 20, .place = {.ref = 1}},
                                 {.begin = 30, .place = {.ref = 2, .part = ProfilePart::kZero}},
                                 {.begin = 40, .place = {.part = ProfilePart::kOutside}}},
                       .fused = {{2, 3}}};
  const std::vector<std::uint32_t> offsets = {5, 10, 20, 29, 30, 41, UINT32_MAX, 25};
  const auto lines = LinesOfSamples(4, map, offsets);
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(LineOf(lines, {.ref = 1}).samples, 3);
  EXPECT_DOUBLE_EQ(LineOf(lines, {.ref = 1}).share, 3.0 / 8);
  EXPECT_EQ(LineOf(lines, {.ref = 2, .part = ProfilePart::kZero}).samples, 1);
  EXPECT_EQ(LineOf(lines, {.part = ProfilePart::kOutside}).samples, 4);
  EXPECT_EQ(LineOf(lines, {.ref = 0}).samples, 0);
  EXPECT_EQ(LineOf(lines, {.ref = 2}).fused_into, 3U);
  EXPECT_FALSE(LineOf(lines, {.ref = 3}).fused_into);
  EXPECT_EQ(lines[2].place, (ProfilePlace{.ref = 2, .part = ProfilePart::kZero}));
  EXPECT_EQ(lines[3].place, (ProfilePlace{.ref = 2}));
  EXPECT_EQ(lines.back().place.part, ProfilePart::kOutside);
}

// Values of Wilson's interval from tables.
TEST(ProfileLines, TheIntervalComesFromTheCount) {
  EXPECT_NEAR(IntervalOf(100, 200).low, 0.4313, 1e-4);
  EXPECT_NEAR(IntervalOf(100, 200).high, 0.5687, 1e-4);
  EXPECT_EQ(IntervalOf(0, 200).low, 0);
  EXPECT_NEAR(IntervalOf(0, 200).high, 0.0188, 1e-4);
  EXPECT_EQ(IntervalOf(200, 200).high, 1);
  EXPECT_NEAR(IntervalOf(200, 200).low, 0.9812, 1e-4);
  EXPECT_EQ(IntervalOf(0, 0).high, 1);
}

}  // namespace
}  // namespace loopfleet::worker
