#include "common/looptree/tree/key.h"

#include <gtest/gtest.h>

#include "common/looptree/actions/walk.h"
#include "common/looptree/text/text.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {
namespace {

TreeKey KeyAfter(const std::string& uri, const std::string& actions) {
  const auto replayed = Replay(BenchmarkUri{uri}, *ParseActionList(actions));
  LF_CHECK(replayed.has_value(), "{}", replayed.error().message);
  return KeyOf(replayed->tree);
}

constexpr char kMm[] = "benchmark://mm-v0/mm64_64_64";

TEST(TreeKey, TheWayDoesNotMatter) {
  EXPECT_EQ(KeyAfter(kMm, ""), KeyAfter(kMm, "down,up"));
  EXPECT_EQ(KeyAfter(kMm, ""), KeyAfter(kMm, "swap_down,swap_up"));
  EXPECT_EQ(KeyAfter(kMm, ""), KeyAfter(kMm, "split_8,down,merge"));
  EXPECT_EQ(KeyAfter(kMm, ""), KeyAfter(kMm, "split_8,undo"));
  EXPECT_EQ(KeyAfter(kMm, "split_4"), KeyAfter(kMm, "down,up,split_4"));
}

TEST(TreeKey, LoopsAndAnnotationsMatter) {
  const std::vector<std::string> walks = {"",          "split_2", "split_4",       "swap_down",
                                          "vectorize", "unroll",  "down,vectorize"};
  for (std::size_t i = 0; i < walks.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(KeyAfter(kMm, walks[i]), KeyAfter(kMm, walks[j]));
  }
  EXPECT_NE(KeyAfter(kMm, ""), KeyAfter("benchmark://mm-v0/mm64_64_65", ""));
}

TEST(TreeKey, NamesAndTheOrderOfDeclarationDoNotMatter) {
  const std::string one =
      "v:m\nv:n\nn:2::0,1,:::0:::::\nn:15:0,:0,1,:::0:0;3;0,1;4;0,::,,::\n"
      "n:1:1,:0,1,:::0:0;3;0,1;4;0,::,,::\ni:0,\no:2,\n";
  const std::string other =
      "v:unused\nv:y_17\nv:x_246620\nn:2::2,1,:::0:::::\nn:15:0,:2,1,:::0:2;3;0,1;4;0,::,,::\n"
      "n:1:1,:2,1,:::0:2;3;0,1;4;0,::,,::\ni:0,\no:2,\n";
  EXPECT_EQ(KeyOf(*ParseIr(one)), KeyOf(*ParseIr(other)));
  EXPECT_EQ(KeyOf(*ParseIr(IrTextOf(Opened(kMm).start))), KeyAfter(kMm, ""));
  EXPECT_EQ(KeyAfter("benchmark://mm-v0/mm64_64_80", ""),
            KeyAfter("benchmark://mm64_256_16_range-v0/mm64_64_80", ""));
}

TEST(TreeKey, ReadsMatter) {
  const std::string ir =
      "v:m\nv:n\nn:2::0,1,:::0:::::\nn:15:0,:0,1,:::0:0;3;0,1;3;0,::,,::\n"
      "n:1:1,:0,1,:::0:0;3;0,1;3;0,::,,::\ni:0,\no:2,\n";
  std::string transposed = ir;
  transposed.replace(transposed.find("n:2::0,1,"), 9, "n:2::1,0,");
  EXPECT_NE(KeyOf(*ParseIr(ir)), KeyOf(*ParseIr(transposed)));
}

// These must never change: stored results are looked up by them.
TEST(ProgramKey, LoopsAndNamesDoNotMatter) {
  const auto key = [](const std::string& uri, const std::string& actions) {
    const auto replayed = Replay(BenchmarkUri{uri}, *ParseActionList(actions));
    LF_CHECK(replayed.has_value(), "{}", replayed.error().message);
    return ProgramKeyOf(replayed->tree.program());
  };
  EXPECT_EQ(key(kMm, ""), key(kMm, "split_4,down,vectorize"));
  EXPECT_NE(key(kMm, ""), key("benchmark://mm-v0/mm64_64_65", ""));
  std::string text = IrTextOf(Opened(kMm).start);
  text.replace(text.find("v:m"), 3, "v:rows");
  EXPECT_EQ(ProgramKeyOf(ParseIr(text)->program()), key(kMm, ""));
  EXPECT_EQ(key(kMm, "").ToString(), "8fdded10c61b9a7c6e5c4cb755cd0c28");
}

TEST(TreeKey, GuardsOutsidesAndConstantsMatter) {
  const auto form = [](ViewIndex index, double outside, double factor) {
    return CanonicalForm(WholeLoops({.dims = {{"i", 4}, {"o", 6}},
                                     .nodes = {{.op = Op::kRead, .dims = {0}},
                                               {.op = Op::kView,
                                                .inputs = {0},
                                                .dims = {1},
                                                .view = {std::move(index)},
                                                .outside = outside},
                                               {.op = Op::kConstant, .constant = factor},
                                               {.op = Op::kMultiply, .inputs = {1, 2}, .dims = {1}},
                                               {.op = Op::kWrite, .inputs = {3}, .dims = {1}}}})
                             .start);
  };
  const ViewIndex padding{0, {{1, 1}}, -1, 1, true};
  ViewIndex halved = padding;
  halved.divisor = 2;
  const std::string plain = form(padding, 0, 1);
  EXPECT_EQ(plain, form(padding, 0, 1));
  EXPECT_NE(plain, form(halved, 0, 1));
  EXPECT_NE(plain, form(padding, 1, 1));
  EXPECT_NE(plain, form(padding, 0, 2));
}

TEST(TreeKey, GoldenKeys) {
  EXPECT_EQ(CanonicalForm(Opened("benchmark://mm-v0/mm2_3_4").start),
            "loopfleet tree 1\n"
            "read()[d0=2 d1=4 ]\n"
            "read()[d1=4 d2=3 ]\n"
            "multiply(%0 %1 )[d0=2 d1=4 d2=3 ]\n"
            "add(%2 )[d0=2 d2=3 ]\n"
            "write(%3 )[d0=2 d2=3 ]\n"
            "in %0 %1\n"
            "out %4\n"
            "0 for d0 2 0 \n"
            "1 for d1 4 0 \n"
            "2 for d2 3 0 \n"
            "3 %2\n"
            "3 %3\n"
            "1 for d2 3 0 \n"
            "2 %4\n");
  EXPECT_EQ(KeyAfter(kMm, "").ToString(), "3ce5e6700fb7f8af49486353e7b36a77");
  EXPECT_EQ(KeyAfter(kMm, "down,split_16,swap_up").ToString(), "b54c9e018de9bd4801cf763ba95647bd");
  EXPECT_EQ(
      KeyAfter("benchmark://loop_tool-cpu-v0/1024", "toggle_mode,up,toggle_mode,up,up").ToString(),
      "e43df61c7abf6c6859656b24fd79ddf7");
}

TEST(TreeKey, TextAndBack) {
  const TreeKey key = KeyAfter(kMm, "");
  EXPECT_EQ(key.ToString().size(), 32u);
  EXPECT_EQ(TreeKey::Parse(key.ToString()), key);
  EXPECT_EQ(TreeKey::Parse("12"), std::nullopt);
  EXPECT_EQ(TreeKey::Parse(std::string(32, 'G')), std::nullopt);
}

}  // namespace
}  // namespace loopfleet::looptree
