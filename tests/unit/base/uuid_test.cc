#include "common/base/uuid.h"

#include <gtest/gtest.h>

#include <set>

namespace loopfleet {
namespace {

TEST(Uuid, TextRoundTrips) {
  const Uuid uuid = Uuid::Random();
  const std::string text = uuid.ToString();
  EXPECT_EQ(text.size(), 32u);
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos) << text;
  EXPECT_EQ(Uuid::Parse(text), uuid);
}

TEST(Uuid, TextIsTheBytesInOrder) {
  Uuid uuid;
  for (std::size_t i = 0; i < uuid.bytes.size(); ++i) {
    uuid.bytes[i] = static_cast<std::uint8_t>(0x10 * i + i);
  }
  EXPECT_EQ(uuid.ToString(), "00112233445566778899aabbccddeeff");
  EXPECT_EQ(Uuid::Parse("00112233445566778899AABBCCDDEEFF"), uuid);
}

TEST(Uuid, WrongTextIsNoUuid) {
  for (const char* text :
       {"", "00112233445566778899aabbccddeef", "00112233445566778899aabbccddeefff",
        "00112233445566778899aabbccddeefg", "0011223344556677-899aabbccddeeff",
        " 0112233445566778899aabbccddeeff"}) {
    EXPECT_EQ(Uuid::Parse(text), std::nullopt) << text;
  }
}

TEST(Uuid, NilIsOnlyTheDefault) {
  EXPECT_TRUE(Uuid{}.is_nil());
  EXPECT_FALSE(Uuid::Random().is_nil());
  EXPECT_EQ(Uuid{}.ToString(), std::string(32, '0'));
}

TEST(Uuid, RandomOnesDiffer) {
  std::set<Uuid> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(Uuid::Random()).second);
}

}  // namespace
}  // namespace loopfleet
