#include "client/json_line.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace loopfleet::client {
namespace {

std::string ErrorOf(std::string_view line) {
  const auto parsed = ParseJsonLine(line, {.nesting = 4, .fields = 10, .values = 100});
  return parsed ? "parsed" : parsed.error();
}

TEST(JsonLine, SaysWhereItStoppedBeingJson) {
  EXPECT_EQ(ErrorOf(""), "not JSON: the line ends too early, at column 1");
  EXPECT_EQ(ErrorOf(R"({"actions": ["up")"),
            "not JSON: the line ends too early, at column 18, behind the key 'actions'");
  EXPECT_EQ(ErrorOf(R"({"uri": "x", "actions": up})"),
            "not JSON: unexpected 'u' at column 25, behind the key 'actions'");
  EXPECT_EQ(ErrorOf("{\"uri\": \"\xff\"}"),
            R"(not JSON: unexpected '\xff' at column 10, behind the key 'uri')");
  EXPECT_EQ(ErrorOf(R"({"größe": ö})"),
            "not JSON: unexpected 'ö' at column 13, behind the key 'größe'");
  EXPECT_EQ(ErrorOf(R"({"budget_ms": 1e999})"),
            "not JSON: a number is too large, behind the key 'budget_ms'");
}

TEST(JsonLine, NeverLeaksTheLibrarysWords) {
  for (const char* line : {"", "{", "nonsense", "{\"a\": \"\x01\"}", "[1, ]", "{\"a\" 5}", "1e999",
                           "{} {}", "\"\\u12\"", "\"\\ud800\"", "tru", "-"}) {
    const std::string error = ErrorOf(line);
    EXPECT_EQ(error.find("json.exception"), std::string::npos) << error;
    EXPECT_EQ(error.find("syntax error"), std::string::npos) << error;
    EXPECT_TRUE(error.starts_with("not JSON: ")) << line << ": " << error;
  }
}

TEST(JsonLine, StopsAtTheFirstValueTooMany) {
  std::string many = "{\"a\": [0";
  for (int i = 0; i < 97; ++i) many += ",0";
  EXPECT_EQ(ErrorOf(many + "]}"), "parsed");  // the object and the array count as values too
  EXPECT_EQ(ErrorOf(many + ",0]}"), "more than 100 values, behind the key 'a'");
  EXPECT_EQ(ErrorOf(many + ",0 and what is no JSON"), "more than 100 values, behind the key 'a'");
}

TEST(JsonLine, StopsAtTheFirstFieldTooMany) {
  std::string many = "{\"k0\": 0";
  for (int i = 1; i < 10; ++i) many += fmt::format(",\"k{}\": 0", i);
  EXPECT_EQ(ErrorOf(many + "}"), "parsed");
  EXPECT_EQ(ErrorOf(many + ",\"k10\": 0}"), "more than 10 fields");
  EXPECT_EQ(ErrorOf("[" + many + "}]"), "parsed");
}

TEST(JsonLine, BoundsNestingAndRefusesAKeyTwice) {
  EXPECT_EQ(ErrorOf("[[[[]]]]"), "parsed");
  EXPECT_EQ(ErrorOf(R"({"a": [[[[1]]]]})"), "nested deeper than 4, behind the key 'a'");
  EXPECT_EQ(ErrorOf(R"({"a": 1, "a": 1})"), "the field 'a' is given twice");
  EXPECT_EQ(ErrorOf(R"({"a": {"b": 1}, "b": 1})"), "parsed");
}

}  // namespace
}  // namespace loopfleet::client
