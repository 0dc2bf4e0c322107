#include "common/wire/codec/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace loopfleet::wire {
namespace {

TEST(Utf8, Valid) {
  for (const std::string_view text :
       {"", "plain", "é", "\xdf\xbf", "\xe0\xa0\x80", "→", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xf0\x90\x80\x80", "𝛑", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  EXPECT_TRUE(IsUtf8(std::string_view("a\0b", 3)));
}

TEST(Utf8, Invalid) {
  for (const std::string_view text :
       {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x9f\xbf", "\xe2\x82",
        "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf0\x9d\x9b", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
        "\xff", "ok\xfe"}) {
    EXPECT_FALSE(IsUtf8(text));
  }
}

TEST(Utf8, InvalidAtAnyPlace) {
  for (std::size_t before = 0; before < 20; ++before) {
    for (std::size_t after = 0; after < 10; ++after) {
      const std::string text = std::string(before, 'x') + "\xfe" + std::string(after, 'y');
      EXPECT_FALSE(IsUtf8(text)) << before << ' ' << after;
      EXPECT_EQ(ToUtf8(text, 100), std::string(before, 'x') + "?" + std::string(after, 'y'));
      EXPECT_TRUE(IsUtf8(std::string(before, 'x') + "é" + std::string(after, 'y')));
    }
  }
}

TEST(Utf8, IsMadeSo) {
  EXPECT_EQ(ToUtf8("plain é", 100), "plain é");
  EXPECT_EQ(ToUtf8("a\xff\xc3", 100), "a??");
  EXPECT_EQ(ToUtf8("\xed\xa0\x80", 100), "???");
}

TEST(Utf8, IsCutBetweenCharacters) {
  EXPECT_EQ(ToUtf8("aéb", 4), "aéb");
  EXPECT_EQ(ToUtf8("aéb", 3), "aé");
  EXPECT_EQ(ToUtf8("aéb", 2), "a");
  EXPECT_EQ(ToUtf8("aéb", 0), "");
}

}  // namespace
}  // namespace loopfleet::wire
