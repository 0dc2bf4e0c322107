#include "worker/portable_c/c_source.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/job/loop_schedule.h"
#include "common/looptree/actions/action.h"
#include "common/looptree/text/text.h"
#include "tests/support/paths.h"
#include "tests/unit/worker/lowering/fuzz_case.h"
#include "tests/unit/worker/lowering/guarded_run.h"
#include "tests/unit/worker/lowering/program_zoo.h"
#include "tests/unit/worker/portable_c/c_library.h"

namespace loopfleet::worker {
namespace {

using looptree::LoopTree;
using looptree::Op;

constexpr int kShards = 5;
constexpr int kCasesInShard = 100;

// A tree to compile, with the text that identifies it in messages.
struct Case {
  LoopTree tree;
  std::string line;
  std::uint64_t input_seed = 1;
};

// Compiles all cases into one library and runs each.
void ExpectRight(const std::vector<Case>& cases) {
  std::vector<CFile> files;
  std::vector<std::vector<BufferSpec>> buffers;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string function = fmt::format("kernel_{}", i);
    auto text = CSourceOf(cases[i].tree, {.function = function});
    ASSERT_TRUE(text.has_value()) << text.error().message << "\n" << cases[i].line;
    files.push_back({function, std::move(text->text)});
    buffers.push_back(BufferSpecsOf(PlanKernel(cases[i].tree).value()));
  }
  const auto library = CLibrary::Compile(files);
  ASSERT_TRUE(library.has_value()) << library.error().message;
  CachedReference references;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [inputs, reference] = references.Of(cases[i].tree.program(), cases[i].input_seed);
    std::string problems;
    const auto outputs = RunGuarded(library->Find(files[i].function), buffers[i], inputs, problems);
    problems += Difference(outputs, reference);
    problems += Difference(outputs, looptree::Interpret(cases[i].tree, inputs), reference);
    ASSERT_EQ(problems, "") << cases[i].line << "\n" << files[i].text;
  }
}

// Expects the text of tests/golden/portable_c/NAME.c, and the right result.
void ExpectGolden(const std::string& name, const LoopTree& tree) {
  const std::string text = CSourceOf(tree).value().text;
  const std::string golden = LOOPFLEET_SOURCE_DIR "/tests/golden/portable_c/" + name + ".c";
  if (std::getenv("LOOPFLEET_WRITE_GOLDEN") != nullptr) WriteFile(golden, text);
  EXPECT_EQ(text, ReadFile(golden)) << "if it is meant to change: LOOPFLEET_WRITE_GOLDEN=1";
  ExpectRight({{tree, name, 1}});
}

class CSourceFuzz : public ::testing::TestWithParam<int> {};

TEST_P(CSourceFuzz, EqualsTheInterpreter) {
  FuzzCases fuzz(0xc0de + static_cast<std::uint64_t>(GetParam()));
  std::vector<Case> cases;
  while (cases.size() < kCasesInShard) {
    FuzzCase one = fuzz.Next();
    one.isa = "c";
    const auto replayed = ReplayJob(one.job);
    ASSERT_TRUE(replayed.has_value()) << replayed.error().message << "\n" << ToLine(one);
    cases.push_back({replayed->tree, ToLine(one), one.input_seed});
  }
  ExpectRight(cases);
}
INSTANTIATE_TEST_SUITE_P(Shard, CSourceFuzz, ::testing::Range(0, kShards));

TEST(CSource, NamesThatAreNoneInC) {
  ProgramBuilder b;
  std::vector<looptree::DimId> dims;
  for (const char* name : {"for", "int", "x.y", "x_y", "9", "_Bool", "*", "?\?(", "in0", "t2", "v3",
                           "M_PI", "buffers", "errno"}) {
    dims.push_back(b.Dim(name, 2));
  }
  const auto x = b.Read(dims);
  std::vector<looptree::DimId> reversed(dims.rbegin(), dims.rend());
  b.Write(b.Apply(Op::kExp, {x}, dims), reversed);
  ExpectRight({{PlainTree(b.program()), "odd names", 1}});
}

// A loop that hid the function would leave nothing to call.
TEST(CSource, DimsWithTheNamesOfFunctions) {
  std::vector<Case> cases;
  for (const auto& [op, name] : std::vector<std::pair<Op, std::string>>{{Op::kLog, "logf"},
                                                                        {Op::kExp, "expf"},
                                                                        {Op::kSqrt, "sqrtf"},
                                                                        {Op::kAbs, "fabsf"},
                                                                        {Op::kTanh, "tanhf"},
                                                                        {Op::kErf, "erff"},
                                                                        {Op::kSin, "sinf"},
                                                                        {Op::kCos, "cosf"},
                                                                        {Op::kFloor, "floorf"},
                                                                        {Op::kCeil, "ceilf"},
                                                                        {Op::kRound, "nearbyintf"},
                                                                        {Op::kPower, "powf"}}) {
    ProgramBuilder b;
    const auto m = b.Dim(name, 3);
    const auto absolute = b.Apply(Op::kAbs, {b.Read({m})}, {m});
    const auto positive = b.Apply(Op::kAdd, {absolute, b.Constant(1.5, {m})}, {m});
    std::vector<looptree::NodeId> operands = {positive};
    if (op == Op::kPower) operands.push_back(positive);
    b.Write(b.Apply(op, operands, {m}), {m});
    cases.push_back({PlainTree(b.program()), name, 1});
  }
  ExpectRight(cases);
}

TEST(CSource, NumbersOfEveryKind) {
  ProgramBuilder b;
  const auto m = b.Dim("m", 3);
  const auto x = b.Read({m});
  auto sum = x;
  for (double constant : {1e-30, -2.5, 16777216.0, 0.1, -0.0}) {
    sum = b.Apply(Op::kAdd, {sum, b.Constant(constant, {m})}, {m});
  }
  const auto infinity = b.Constant(-std::numeric_limits<double>::infinity(), {m});
  b.Write(b.Apply(Op::kMax, {sum, infinity}, {m}), {m});
  ExpectRight({{PlainTree(b.program()), "numbers", 1}});
}

// The article's tile: m in blocks of 8 with a tail of 1, n in blocks of 32 with a tail of 16.
TEST(CSource, ReadsLikeTheTree) {
  ProgramBuilder b;
  const auto m = b.Dim("m", 33);
  const auto k = b.Dim("k", 16);
  const auto n = b.Dim("n", 48);
  const auto x = b.Read({m, k});
  const auto y = b.Read({k, n});
  const auto product = b.Apply(Op::kMultiply, {x, y}, {m, k, n});
  const auto positive = b.Apply(Op::kMax, {product, b.Constant(0, {m, k, n})}, {m, k, n});
  const auto sum = b.Apply(Op::kAdd, {positive}, {m, n});
  const auto result = b.Write(sum, {m, n});
  looptree::Schedule schedule(b.program().nodes.size());
  for (auto node : {product, positive, sum}) {
    schedule[node].loops = {{m, 4, 1}, {n, 1, 16}, {k, 16}, {n, 32}, {m, 8}};
  }
  schedule[result].loops = {{m, 4, 1}, {n, 1, 16}, {n, 32}, {m, 8}};
  const auto tree =
      LoopTree::Build(std::make_shared<looptree::Program>(b.program()), schedule).value();
  ExpectGolden("positive_products", tree);
}

TEST(CSource, KnowsTheLinesOfNodes) {
  JobSpec job{.source = looptree::BenchmarkUri{"benchmark://mm-v0/mm33_48_16"}};
  const CSource source = CSourceOf(ReplayJob(job).value().tree).value();
  std::vector<std::string> lines;
  for (const auto line : std::views::split(source.text, '\n')) {
    lines.emplace_back(line.begin(), line.end());
  }
  const auto text_of = [&](const std::optional<std::size_t>& line) {
    return line ? lines.at(*line) : "none";
  };
  const char* const nodes[] = {
      "  for (int64_t m = 0; m < 33; ++m) { /* L0: m in 33 */",
      "    for (int64_t k = 0; k < 16; ++k) { /* L1: k in 16 */",
      "      for (int64_t n = 0; n < 48; ++n) { /* L2: n in 48 */",
      "        const float v2 = in0[m * 16 + k] * in1[k * 48 + n]; /* multiply */",
      "        t3[n] += v2; /* %3 */",
      "    for (int64_t n = 0; n < 48; ++n) { /* L5: n in 48 */",
      "      out0[m * 48 + n] = t3[n]; /* %4 */"};
  ASSERT_EQ(source.lines.size(), std::size(nodes));
  for (std::size_t ref = 0; ref < std::size(nodes); ++ref) {
    EXPECT_EQ(text_of(source.lines[ref].node), nodes[ref]);
    EXPECT_EQ(text_of(source.lines[ref].start),
              ref == 4 ? "      t3[n_init] = 0.0f; /* %3 */" : "none");
  }
}

// Conditions in the order in which they are checked, an index that is divided, a constant with a
// condition.
TEST(CSource, GuardsReadLikeTheView) {
  for (const ZooProgram& zoo : ProgramZoo()) {
    if (zoo.name == "PaddedConvolution") ExpectGolden("padded_convolution", PlainTree(zoo.program));
    if (zoo.name == "SpreadConvolution") ExpectGolden("spread_convolution", PlainTree(zoo.program));
    if (zoo.name == "Concatenation") ExpectGolden("concatenation", PlainTree(zoo.program));
  }
}

// What the lowering makes of splits, tails, orders, reductions, views and scopes, as text.
TEST(CSource, PlansAreAsTheyWere) {
  struct Golden {
    const char* name;
    const char* uri;
    const char* actions;
  };
  for (const Golden& golden :
       {Golden{"matmul", "benchmark://mm-v0/mm33_48_16", ""},
        Golden{"matmul_split_with_tail", "benchmark://mm-v0/mm33_48_16", "split_8"},
        Golden{"matmul_two_tails", "benchmark://mm-v0/mm33_48_16", "split_8,down,split_3"},
        Golden{"matmul_k_outermost", "benchmark://mm-v0/mm33_48_16", "swap_down"},
        Golden{"matmul_k_innermost", "benchmark://mm-v0/mm33_48_16", "down,swap_down"},
        Golden{"matmul_tiled", "benchmark://mm-v0/mm32_48_16",
               "split_8,down,swap_down,swap_down,down,split_4"},
        Golden{"convolution", "benchmark://conv-v0/conv1_2_6_6__3_2_3_3", ""},
        Golden{"bias", "benchmark://program-v0/mmbias12_20_8", "split_4"},
        Golden{"two_products", "benchmark://program-v0/twomm8_6_4_10", ""},
        Golden{"chain", "benchmark://program-v0/chain6_10", "merge"},
        Golden{"row_sums", "benchmark://program-v0/reduce_add10_7", "swap_down"},
        Golden{"positive_product_constant", "benchmark://program-v0/positive_product_c12_20_8", ""},
        Golden{"shift", "benchmark://program-v0/shift6_9", ""}}) {
    JobSpec job{.source = looptree::BenchmarkUri{golden.uri},
                .on_illegal = looptree::OnIllegal::kSkip};
    std::vector<std::string> names;
    for (const auto part : std::views::split(std::string_view(golden.actions), ',')) {
      if (!part.empty()) names.emplace_back(part.begin(), part.end());
    }
    job.actions = looptree::ParseActions(names).value();
    ExpectGolden(golden.name, ReplayJob(job).value().tree);
  }
}

}  // namespace
}  // namespace loopfleet::worker
