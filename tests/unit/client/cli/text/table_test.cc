#include "client/cli/text/table.h"

#include <gtest/gtest.h>

namespace loopfleet::client {
namespace {

TEST(TableTest, AlignsColumnsWithoutTrailingBlanks) {
  Table table({"NAME", "N"});
  table.Add({"a longer name", "1"});
  table.Add({"b", "22"});
  EXPECT_EQ(table.Text(),
            "NAME           N\n"
            "a longer name  1\n"
            "b              22\n");
}

TEST(TableTest, NoCellSteersTheTerminal) {
  Table table({"NAME", "N"});
  table.Add({"\x1b]0;mine\r\n", "1"});
  EXPECT_EQ(table.Text(),
            "NAME                 N\n"
            R"(\x1b]0;mine\x0d\x0a  1)"
            "\n");
}

}  // namespace
}  // namespace loopfleet::client
