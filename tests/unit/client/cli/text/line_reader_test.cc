#include "client/cli/text/line_reader.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace loopfleet::client {
namespace {

TEST(LineReaderTest, NumbersLinesAndKnowsBlankOnes) {
  std::istringstream stream("one\n\n  \t\r\ntwo");
  LineReader reader(stream, 100);
  const auto first = reader.Next();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->text, "one");
  EXPECT_EQ(first->number, 1u);
  EXPECT_FALSE(first->blank);
  EXPECT_TRUE(reader.Next()->blank);
  EXPECT_TRUE(reader.Next()->blank);
  const auto last = reader.Next();
  ASSERT_TRUE(last.has_value()) << "a last line needs no line break";
  EXPECT_EQ(last->text, "two");
  EXPECT_EQ(last->number, 4u);
  EXPECT_FALSE(reader.Next().has_value());
}

TEST(LineReaderTest, KeepsJustEnoughOfALineThatIsTooLong) {
  std::istringstream stream(std::string(1000, 'x') + "\nnext\n");
  LineReader reader(stream, 10);
  EXPECT_EQ(reader.Next()->text.size(), 11u);
  EXPECT_EQ(reader.Next()->text, "next");
}

TEST(LineReaderTest, ALineThatIsTooLongIsNotBlankWhateverItBeginsWith) {
  std::istringstream stream(std::string(1000, ' ') + "x\n");
  LineReader reader(stream, 10);
  EXPECT_FALSE(reader.Next()->blank);
}

TEST(LineReaderTest, HasNoLineInAnEmptyStream) {
  std::istringstream stream("");
  LineReader reader(stream, 10);
  EXPECT_FALSE(reader.Next().has_value());
  EXPECT_EQ(reader.failure(), "");
}

TEST(LineReaderTest, SaysWhyAStreamCannotBeRead) {
  std::ifstream folder("/");
  LineReader reader(folder, 10);
  EXPECT_FALSE(reader.Next().has_value());
  EXPECT_EQ(reader.failure(), "Is a directory");
}

}  // namespace
}  // namespace loopfleet::client
