#include "common/base/suggestion.h"

#include <gtest/gtest.h>

#include <array>

namespace loopfleet {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"up",      "down",    "swap_up",
                                                    "split_2", "split_4", "vectorize"};

TEST(Suggestion, FindsTheNearestName) {
  EXPECT_EQ(Nearest("splt_4", kNames), "split_4");
  EXPECT_EQ(Nearest("vectorise", kNames), "vectorize");
  EXPECT_EQ(Nearest("swap_pu", kNames), "swap_up");
  EXPECT_EQ(Nearest("up", kNames), "up");
}

TEST(Suggestion, ASwapOfNeighboursIsOneStep) {
  // "ba" is one swap from "ab" and one replacement from "bb": the first candidate wins.
  EXPECT_EQ(Nearest("ba", std::array<std::string_view, 2>{"ab", "bb"}), "ab");
  // If a swap were two edits, "bazz" (two edits, and first in the list) would win over "abx".
  EXPECT_EQ(Nearest("bax", std::array<std::string_view, 2>{"bazz", "abx"}), "abx");
}

TEST(Suggestion, TheFirstOfEquallyNearOnesIsTaken) {
  EXPECT_EQ(Nearest("split_3", kNames), "split_2");
}

TEST(Suggestion, CapitalLettersAreAsNearAsSmallOnes) {
  EXPECT_EQ(Nearest("DOWN", kNames), "down");
  EXPECT_EQ(Nearest("GVN", std::array<std::string_view, 2>{"gvm", "Gvn"}), "Gvn");
}

TEST(Suggestion, QuotedTextIsPrintable) {
  EXPECT_EQ(Quoted("mm-v0/größe→行列"), "'mm-v0/größe→行列'");
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Quoted("a\x1b[2J\n"), R"('a\x1b[2J\x0a')");
}

TEST(Suggestion, QuotedTextIsCutBetweenCharacters) {
  EXPECT_EQ(Quoted(std::string(61, 'x')), "'" + std::string(60, 'x') + "...'");
  EXPECT_EQ(Quoted(std::string(59, 'x') + "→→"), "'" + std::string(59, 'x') + "→...'");
}

TEST(Suggestion, NothingIsOfferedWhereNothingIsNear) {
  EXPECT_EQ(Nearest("tensorize_everything", kNames), std::nullopt);
  EXPECT_EQ(Nearest("anything", {}), std::nullopt);
  EXPECT_EQ(NearestSuffix("tensorize_everything", kNames), "");
}

TEST(Suggestion, TheSuffixEndsAMessage) {
  EXPECT_EQ("unknown action 'splt_4'" + NearestSuffix("splt_4", kNames),
            "unknown action 'splt_4'; nearest: split_4");
}

TEST(Suggestion, AMegabyteOfNonsenseIsAnsweredAtOnce) {
  EXPECT_EQ(Nearest(std::string(1 << 20, 'x'), kNames), std::nullopt);
}

}  // namespace
}  // namespace loopfleet
