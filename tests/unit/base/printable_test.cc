#include "common/base/printable.h"

#include <gtest/gtest.h>

namespace loopfleet {
namespace {

TEST(Printable, TextInAnyScriptIsKept) {
  EXPECT_EQ(Printable("mm-v0/größe→行列"), "mm-v0/größe→行列");
  EXPECT_EQ(Printable(""), "");
}

TEST(Printable, NothingActsOnATerminal) {
  EXPECT_EQ(Printable("a\x1b[2J\n\x7f"), R"(a\x1b[2J\x0a\x7f)");
  EXPECT_EQ(Printable("a\xff\xc3"), R"(a\xff\xc3)") << "not UTF-8";
  EXPECT_EQ(Printable("\xc2\x9b"), R"(\xc2\x9b)") << "a control character, too";
  EXPECT_EQ(Printable("\u202edwon"), R"(\xe2\x80\xaedwon)") << "written from right to left";
  EXPECT_EQ(Printable("\u200bup\u2066"), R"(\xe2\x80\x8bup\xe2\x81\xa6)");
  EXPECT_EQ(Printable("\U000e0041"), R"(\xf3\xa0\x81\x81)");
}

TEST(Printable, ControlCharactersMayBeKept) {
  EXPECT_EQ(Printable("a\n\tb\r", "\n\t"), "a\n\tb\\x0d");
}

}  // namespace
}  // namespace loopfleet
