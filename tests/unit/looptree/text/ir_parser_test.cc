#include <gtest/gtest.h>

#include "common/looptree/text/text.h"
#include "common/looptree/tree/annotation_text.h"
#include "common/looptree/tree/key.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {
namespace {

constexpr char kNegate[] =
    "v:m\nn:2::0,:::0:::::\nn:15:0,:0,:::0.5:0;2;1,0;4;0,:1,:,unroll,::\n"
    "n:1:1,:0,:::0:0;9;0,::,::\ni:0,\no:2,\n";

TEST(IrText, EverythingSurvives) {
  const auto tree = ParseIr(kNegate);
  ASSERT_TRUE(tree.has_value()) << tree.error().message;
  EXPECT_EQ(IrTextOf(*tree), kNegate);
  EXPECT_FALSE(tree->schedule()[1].loops[1].reusable);
  EXPECT_EQ(tree->schedule()[1].loops[1].annotation, Annotation::kUnroll);
  EXPECT_EQ(tree->schedule()[1].priority, 0.5);
}

TEST(IrText, WordsHaveNoEffectAndStayInTextOfOnesOwn) {
  const auto plain = ParseIr(kNegate);
  std::string text = kNegate;
  text.replace(text.find("n:1:1,"), std::string::npos,
               "n:1:1,:0,:::0:0;2;1,0;4;0,::note,a b,::\ni:0,\no:2,\n");
  const auto noted = ParseIr(text, {}, Words::kKept);
  ASSERT_TRUE(noted.has_value()) << noted.error().message;
  const Annotation note = noted->schedule()[2].loops[0].annotation;
  EXPECT_EQ(EffectOf(note), Annotation::kNone);
  EXPECT_EQ(AnnotationOfWord("note"), note);
  EXPECT_EQ(IrTextOf(*noted, Words::kKept), text);
  EXPECT_EQ(ParseIr(text).error().message,
            "program line 4: annotation 'note' of a loop; valid: cpu_parallel, unroll, vectorize");
  const auto sent = ParseIr(IrTextOf(*noted));
  ASSERT_TRUE(sent.has_value()) << sent.error().message;
  EXPECT_EQ(KeyOf(*sent), KeyOf(*noted));
  // Loops that differ in a word alone are shared.
  EXPECT_EQ(TreeText(*sent, {}).find("for m in 2 r 1 : L1"), std::string::npos);
  EXPECT_EQ(sent->nodes().size(), noted->nodes().size());
  for (const char* word : {"a,b", "a:b", "a\nb", "\x7f"})
    EXPECT_FALSE(AnnotationOfWord(word)) << word;
  EXPECT_EQ(AnnotationOfWord("thread"), Annotation::kThread);
}

TEST(IrText, EmptyLinesAtTheEndAreAnEditors) {
  EXPECT_TRUE(ParseIr(std::string(kNegate) + "\n\n").has_value());
  EXPECT_FALSE(ParseIr("\n" + std::string(kNegate)).has_value());
}

TEST(IrText, ViewsSurvive) {
  for (const char* uri :
       {"benchmark://conv-v0/conv2_3_6_5__2_3_3_2", "benchmark://conv-v0/conv1_1_1_1__1_1_1_1"}) {
    const LoopTree start = Opened(uri).start;
    const auto parsed = ParseIr(IrTextOf(start));
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    EXPECT_EQ(parsed->program(), start.program());
    EXPECT_EQ(KeyOf(*parsed), KeyOf(start));
  }
}

TEST(IrText, AffineViewsSurvive) {
  Program program;
  program.dims = {{"i", 20}, {"o", 5}, {"k", 3}};
  program.nodes = {
      {.op = Op::kRead, .dims = {0}},
      {.op = Op::kView, .inputs = {0}, .dims = {1, 2}, .view = {{0, {{1, 2}, {2, -3}}, 7}}},
      {.op = Op::kAdd, .inputs = {1}, .dims = {1}},
      {.op = Op::kWrite, .inputs = {2}, .dims = {1}}};
  const LoopTree start = WholeLoops(std::move(program)).start;
  const auto parsed = ParseIr(IrTextOf(start));
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->program(), start.program());
}

TEST(IrText, BadTextNamesItsLine) {
  const auto message = [](const std::string& from, const std::string& to) {
    std::string text = kNegate;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto tree = ParseIr(text);
    return tree ? "accepted" : tree.error().message;
  };
  EXPECT_EQ(message("n:15:", "n:99:"),
            "program line 3: operation '99' must be a number from 0 to 17 or 32 to 44");
  EXPECT_EQ(message("n:15:", "n:16:x"), "program line 3: inputs: bad number 'x0'");
  EXPECT_EQ(message("0;2;1,", "0;2,"),
            "program line 3: bad loop '0;2': it must be <dimension>;<size>;<tail>");
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"0;2;1,", "0;0;1,"},
           {"0;2;1,", "0;-2;1,"},
           {"0;2;1,", "0;2147483648;1,"},
           {"0;2;1,", "0;9223372036854775807;1,"},
           {"0;2;1,", "0;9223372036854775808;1,"},
           {"0;2;1,", "0;+2;1,"},
           {"0;2;1,", "0;1_000;1,"},
           {"0;2;1,", "0;2;4,"},
           {"0;2;1,", "1;2;1,"},
           {"0.5", "nan"},
           {"0.5", ""},
           {"unroll", "[cpp]"},
           {":1,:", ":2,:"},
           {":,unroll,:", ":unroll,:"},
           {"::\nn:1:", "::"},
           {"v:m\n", ""},
           {"v:m\n", "v:m,\n"},
           {"v:m\n", "v:\xff\n"},
           {"i:0,", "i:0"},
           {"i:0,", "i:2,"},
           {"i:0,", "i:,"},
           {"o:2,\n", ""},
           {"o:2,\n", "o:\n"},
           {"o:2,\n", "o:2,\no:2,\n"},
           {"n:15:0,", "n:15:1,"},
           {"n:15:0,", "n:15:9,"},
           {"n:15:0,", "n:15:4294967296,"},
           {"n:15:0,", "n:3:0,0,"},
           {"n:2::0,", "n:0::0,"},
           {"n:15:0,:0,:", "n:15:0,:0,:0|v|1|;=0|v|1|;/"},
       }) {
    EXPECT_NE(message(from, to), "accepted") << from << " -> " << to;
  }
}

// x of 4 elements, one of them before and two after padded with 0, times 3.
constexpr char kPadded[] =
    "v:i\nv:o\nn:2::0,:::0:::::\n"
    "n:3:0,:1,:0|s|i|;3|f|0,|;=0|v|4|;/0|s|o|;3|f|3,|;=0|v|7|;/"
    "0|r|0|;=0|r|3|;0|v|-1|;5|f|3,8,|;/:0=0,3=1,:0::::outside=0x0p+0:\n"
    "n:0:::::0::::constant=0x1.8p+1:\n"
    "n:7:1,2,:1,:::0:1;7;0,::,::\nn:1:3,:1,:::0:1;7;0,::,::\ni:0,\no:4,\n";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string MessageOf(const std::string& text) {
  const auto tree = ParseIr(text);
  return tree ? "accepted" : tree.error().message;
}

TEST(IrText, GuardsAndConstantsSurvive) {
  const auto tree = ParseIr(kPadded);
  ASSERT_TRUE(tree.has_value()) << tree.error().message;
  EXPECT_EQ(IrTextOf(*tree), kPadded);
  EXPECT_EQ(tree->program().nodes[1].view, (std::vector<ViewIndex>{{0, {{1, 1}}, -1, 1, true}}));
  EXPECT_EQ(tree->program().nodes[2].constant, 3);
  EXPECT_EQ(TreeText(*tree, {}),
            "for o in 7 : L0\n %3[o] <- multiply(%1, 3)\n %4[o] <- write(%3)\n");
}

TEST(IrText, AGuardedViewMayBeGivenEitherWay) {
  const auto same = [](const std::string& from, const std::string& to) {
    const auto tree = ParseIr(Replaced(kPadded, from, to));
    EXPECT_TRUE(tree.has_value()) << tree.error().message;
    return tree && IrTextOf(*tree) == kPadded;
  };
  // o = i + 1
  EXPECT_TRUE(same("0|r|0|;=0|r|3|;0|v|-1|;5|f|3,8,|;/", "0|r|3|;=0|r|0|;0|v|1|;5|f|7,8,|;/"));
  // 2 o - 2 = 2 i
  EXPECT_FALSE(same("0|r|0|;=0|r|3|;0|v|-1|;5|f|3,8,|;/",
                    "0|v|2|;0|r|3|;6|f|6,7,|;0|v|-2|;5|f|8,9,|;=0|r|0|;/"));
  const auto tree = ParseIr(Replaced(kPadded, "0|r|0|;=0|r|3|;0|v|-1|;5|f|3,8,|;/",
                                     "0|r|3|;=0|v|2|;0|r|0|;6|f|7,8,|;/"));  // o = 2 i
  ASSERT_TRUE(tree.has_value()) << tree.error().message;
  EXPECT_EQ(tree->program().nodes[1].view, (std::vector<ViewIndex>{{0, {{1, 1}}, 0, 2, true}}));
  const auto again = ParseIr(IrTextOf(*tree));
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->program(), tree->program());
  EXPECT_NE(IrTextOf(*tree).find("7|f|"), std::string::npos);  // i = o / 2
}

TEST(IrText, BadAnnotationsOfOperationsNameWhatIsValid) {
  EXPECT_EQ(MessageOf(Replaced(kPadded, "constant=0x1.8p+1", "")),
            "program line 5: annotation '' of an operation; valid: 'constant=0x0p+0' of a constant,"
            " 'outside=0x0p+0' of a view");
  EXPECT_EQ(MessageOf(Replaced(kPadded, "0x1.8p+1", "3")),
            "program line 5: constant='3' must be a float32 number in C's hexadecimal form;"
            " nearest: 0x1.8p+1");
  EXPECT_EQ(MessageOf(Replaced(kPadded, "0x1.8p+1", "0x1.00000000001p+1")),
            "program line 5: constant='0x1.00000000001p+1' must be a float32 number in C's"
            " hexadecimal form; nearest: 0x1p+1");
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"0x1.8p+1", "nan"},
           {"0x1.8p+1", "0x3p+0"},
           {"0x1.8p+1", "0X1.8P+1"},
           {"0x1.8p+1", "0x1p+999"},
           {"0x1.8p+1", ""},
           {"constant", "outside"},
           {"outside", "constant"},
           {"outside=0x0p+0", ""},  // the view leaves its input
           {"::,::\nn:1:", "::,:constant=0x0p+0:\nn:1:"},
           {"n:0::", "n:0:1,:"},
       }) {
    EXPECT_NE(MessageOf(Replaced(kPadded, from, to)), "accepted") << from << " -> " << to;
  }
  for (const char* outside : {"inf", "-inf", "-0x0p+0", "-0x1p-149"}) {
    const std::string text = Replaced(kPadded, "outside=0x0p+0", std::string("outside=") + outside);
    ASSERT_EQ(MessageOf(text), "accepted") << outside;
    EXPECT_EQ(IrTextOf(*ParseIr(text)), text);
  }
}

// A view that permutes dimensions of its own is no identity.
TEST(IrText, AViewOfItsOwnDimensionsSurvives) {
  Program program;
  program.dims = {{"a", 3}, {"b", 3}};
  program.nodes = {
      {.op = Op::kRead, .dims = {0, 1}},
      {.op = Op::kView, .inputs = {0}, .dims = {0, 1}, .view = {{0, {{1, 1}}}, {1, {{0, 1}}}}},
      {.op = Op::kNegate, .inputs = {1}, .dims = {0, 1}},
      {.op = Op::kWrite, .inputs = {2}, .dims = {0, 1}}};
  const LoopTree start = WholeLoops(std::move(program)).start;
  const auto parsed = ParseIr(IrTextOf(start));
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->program(), start.program());
}

TEST(IrText, BadViews) {
  const auto accepted = [](const std::string& constraints, const std::string& symbols) {
    return ParseIr("v:i\nv:o\nn:2::0,:::0:::::\nn:3:0,:1,:" + constraints + ":" + symbols +
                   ":0:::::\nn:1:1,:1,:::0:1;4;0,::,::\ni:0,\no:2,\n")
        .has_value();
  };
  const std::string sizes = "0|s|i|;3|f|0,|;=0|v|8|;/0|s|o|;3|f|3,|;=0|v|4|;/";
  EXPECT_TRUE(accepted(sizes + "0|r|0|;=0|r|3|;/", "0=0,3=1,"));
  EXPECT_FALSE(accepted(sizes, "0=0,3=1,"));  // i is not given
  EXPECT_FALSE(accepted(sizes + "0|r|0|;=0|r|3|;0|r|3|;6|f|3,3,|;/", "0=0,3=1,"));  // o * o
  EXPECT_FALSE(accepted(sizes + "0|r|0|;=0|r|3|;/", "0=0,"));
  EXPECT_FALSE(accepted(sizes + "0|r|0|;=0|r|3|;/", "0=0,3=7,"));
  EXPECT_FALSE(accepted(sizes + "0|r|99|;=0|r|3|;/", "0=0,3=1,"));
  EXPECT_FALSE(accepted(sizes + "0|r|0|;=/", "0=0,3=1,"));
  EXPECT_FALSE(accepted(sizes + "0|r|0|;=5|f|9223372036854775808,|;/", "0=0,3=1,"));
  std::string storm = sizes;
  for (int i = 0; i < 5000; ++i) storm += "0|v|1|;=0|v|1|;/";
  EXPECT_FALSE(accepted(storm, "0=0,3=1,"));
}

TEST(IrText, LengthIsBounded) {
  EXPECT_FALSE(ParseIr(std::string(2 << 20, 'v')).has_value());
  std::string many;
  for (int i = 0; i < 100; ++i) many += "v:d" + std::to_string(i) + "\n";
  EXPECT_EQ(ParseIr(many).error().code, RejectionCode::kLimitTree);
  std::string nodes = "v:m\n";
  for (int i = 0; i < 300; ++i) nodes += "n:2::0,:::0:::::\n";
  EXPECT_EQ(ParseIr(nodes).error().code, RejectionCode::kLimitTree);
}

// Every prefix of a valid text, and random changes of up to three bytes: a result, never a crash.
TEST(IrText, MutationsAreAnswered) {
  const std::string conv = IrTextOf(Opened("benchmark://conv-v0/conv1_2_5_5__2_2_2_2").start);
  SplitMix64 random(8);
  for (std::size_t length = 0; length < conv.size(); ++length) {
    static_cast<void>(ParseIr(std::string_view(conv).substr(0, length)));
  }
  constexpr std::string_view kBytes = "0123456789,;:|/=-vnio\n\xff";
  for (int i = 0; i < 20000; ++i) {
    std::string text = conv;
    for (std::uint64_t n = random.Below(3) + 1; n > 0; --n) {
      text[random.Below(text.size())] = kBytes[random.Below(kBytes.size())];
    }
    const auto tree = ParseIr(text);
    if (tree) {
      EXPECT_TRUE(ParseIr(IrTextOf(*tree)).has_value()) << text;
    } else {
      EXPECT_FALSE(tree.error().message.empty());
    }
  }
}

}  // namespace
}  // namespace loopfleet::looptree
