// Parsing of ages, and the errors for invalid ones.

#include "client/cli/text/age.h"

#include <gtest/gtest.h>

namespace loopfleet::client {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(Age, AWholeNumberAndAUnit) {
  EXPECT_EQ(ParseAge("1s").value(), seconds(1));
  EXPECT_EQ(ParseAge("15m").value(), seconds(900));
  EXPECT_EQ(ParseAge("36h").value(), hours(36));
  EXPECT_EQ(ParseAge("90d").value(), hours(90 * 24));
  EXPECT_EQ(ParseAge("2w").value(), hours(14 * 24));
  EXPECT_EQ(ParseAge("36500d").value(), hours(36'500 * 24));
}

TEST(Age, WhatIsNoneNamesTheNearest) {
  const auto nearest = [](std::string_view text) {
    const auto age = ParseAge(text);
    if (age) return std::string("it was taken");
    EXPECT_EQ(age.error().kind, ErrorKind::kInvalid);
    EXPECT_TRUE(age.error().message.starts_with("'" + std::string(text) + "' is no age"))
        << age.error().message;
    return age.error().message.substr(age.error().message.find("nearest: ") + 9);
  };
  EXPECT_EQ(nearest("90"), "90d");
  EXPECT_EQ(nearest("90 d"), "90d");
  EXPECT_EQ(nearest("90D"), "90d");
  EXPECT_EQ(nearest("3 hours"), "3h");
  EXPECT_EQ(nearest("2weeks"), "2w");
  EXPECT_EQ(nearest("1.5d"), "1d");
  EXPECT_EQ(nearest("-7d"), "7d");
  EXPECT_EQ(nearest("+7d"), "7d");
  EXPECT_EQ(nearest("0d"), "1d");
  EXPECT_EQ(nearest("d"), "90d");
  EXPECT_EQ(nearest(""), "90d");
  EXPECT_EQ(nearest("36501d"), "36500d");
  EXPECT_EQ(nearest("9223372036854775808w"), "5214w");
  EXPECT_EQ(nearest("1e3d"), "1d");
}

}  // namespace
}  // namespace loopfleet::client
