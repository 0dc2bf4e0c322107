// The named programs compute what their names say. The three ways to accumulate that the article
// about loop_tool distinguishes are three trees of one program.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/looptree/actions/walk.h"
#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/transform.h"
#include "tests/unit/looptree/programs.h"

namespace loopfleet::looptree {
namespace {

std::string Uri(const std::string& member) { return "benchmark://program-v0/" + member; }

std::string MessageOf(const std::string& member) {
  const auto opened = OpenBenchmark(BenchmarkUri{Uri(member)});
  return opened ? "opened" : opened.error().message;
}

// Inputs of small integers, so that comparisons are exact, and the outputs of the tree.
struct Ran {
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
};
Ran Interpreted(const LoopTree& tree) {
  SplitMix64 random(5);
  Ran ran;
  ran.inputs = IntegerInputs(tree.program(), random);
  ran.outputs = Interpret(tree, ran.inputs);
  return ran;
}

TEST(ProgramDataset, PositiveProductSumsThePositiveProducts) {
  for (const char* name : {"positive_product3_5_4", "positive_product_c3_5_4"}) {
    const Ran ran = Interpreted(Opened(Uri(name)).start);
    const Tensor &x = ran.inputs[0], &y = ran.inputs[1];
    for (std::size_t m = 0; m < 3; ++m) {
      for (std::size_t n = 0; n < 5; ++n) {
        float sum = 0;
        for (std::size_t k = 0; k < 4; ++k) sum += std::max(x[m * 4 + k] * y[k * 5 + n], 0.0F);
        EXPECT_EQ(ran.outputs[0][m * 5 + n], sum);
      }
    }
  }
  EXPECT_EQ(FlopCount(Opened(Uri("positive_product3_5_4")).start.program()), 4 * 3 * 5 * 4);
  EXPECT_EQ(FlopCount(Opened(Uri("positive_product_c3_5_4")).start.program()), 3 * 3 * 5 * 4);
}

TEST(ProgramDataset, BiasTwoProductsAndConvolution) {
  const Ran bias = Interpreted(Opened(Uri("mmbias2_3_4")).start);
  for (std::size_t m = 0; m < 2; ++m) {
    for (std::size_t n = 0; n < 3; ++n) {
      float sum = bias.inputs[2][n];
      for (std::size_t k = 0; k < 4; ++k) {
        sum += bias.inputs[0][m * 4 + k] * bias.inputs[1][k * 3 + n];
      }
      EXPECT_EQ(bias.outputs[0][m * 3 + n], std::max(sum, bias.inputs[3][m * 3 + n]));
    }
  }
  const Ran two = Interpreted(Opened(Uri("twomm2_3_4_5")).start);
  for (std::size_t m = 0; m < 2; ++m) {
    for (std::size_t p = 0; p < 5; ++p) {
      float sum = 0;
      for (std::size_t n = 0; n < 3; ++n) {
        for (std::size_t k = 0; k < 4; ++k) {
          sum += two.inputs[0][m * 4 + k] * two.inputs[1][k * 3 + n] * two.inputs[2][n * 5 + p];
        }
      }
      EXPECT_EQ(two.outputs[0][m * 5 + p], sum);
    }
  }
  const Ran window = Interpreted(Opened(Uri("conv1d9_4")).start);
  for (std::size_t o = 0; o < 6; ++o) {
    float sum = 0;
    for (std::size_t k = 0; k < 4; ++k) sum += window.inputs[0][o + k] * window.inputs[1][k];
    EXPECT_EQ(window.outputs[0][o], sum);
  }
}

TEST(ProgramDataset, ReductionsChainsAndShifts) {
  const Ran greatest = Interpreted(Opened(Uri("reduce_max3_7")).start);
  const Ran sum = Interpreted(Opened(Uri("reduce_add3_7")).start);
  const Ran shift = Interpreted(Opened(Uri("shift3_7")).start);
  const Ran chain = Interpreted(Opened(Uri("chain3_7")).start);
  for (std::size_t m = 0; m < 3; ++m) {
    const auto row = [&](const Ran& ran) {
      return ran.inputs[0].begin() + 7 * static_cast<int>(m);
    };
    EXPECT_EQ(greatest.outputs[0][m], *std::max_element(row(greatest), row(greatest) + 7));
    EXPECT_EQ(sum.outputs[0][m], std::accumulate(row(sum), row(sum) + 7, 0.0F));
    const float most = *std::max_element(row(shift), row(shift) + 7);
    for (std::size_t n = 0; n < 7; ++n) {
      const std::size_t at = m * 7 + n;
      EXPECT_EQ(shift.outputs[0][at], shift.inputs[0][at] - most);
      const float product = chain.inputs[0][at] * chain.inputs[1][at];
      EXPECT_NEAR(chain.outputs[0][at], std::exp(product) + chain.inputs[0][at], 1e-2);
    }
  }
}

TEST(ProgramDataset, NamesAndSizesAreChecked) {
  for (const char* bad :
       {"positive_product", "positive_product1_2", "positive_product1_2_3_4", "reduce_add0_4",
        "reduce_add-1_4", "conv1d3_4", "chain5_", "mmbias1_1_x"}) {
    EXPECT_NE(MessageOf(bad).find("it must be"), std::string::npos) << bad;
  }
  EXPECT_TRUE(MessageOf("posative_product1_2_3").ends_with("nearest: positive_product"));
  EXPECT_EQ(OpenBenchmark(BenchmarkUri{Uri("reduce_add9223372036854775807_2")}).error().code,
            RejectionCode::kLimitFlops);
}

void ExpectSameResult(const LoopTree& tree, const LoopTree& start) {
  EXPECT_EQ(Interpreted(tree).outputs, Interpreted(start).outputs) << TreeText(tree, {});
}

AgentWalk Walked(const Benchmark& benchmark, std::string_view actions) {
  AgentWalk walk(benchmark, RuleSet::kStructural);
  const auto parsed = ParseActionList(actions);
  LF_CHECK(parsed.has_value(), "{}", actions);
  for (const Action& action : *parsed) {
    const auto applied = walk.Apply(action);
    LF_CHECK(applied.has_value(), "{}", applied.error().message);
  }
  return walk;
}

// out[m] = sum over k of in[m, k], 16 x 16, in the three forms of the article.
TEST(ProgramDataset, TheThreeWaysToAccumulateAreTreesOfOneProgram) {
  const Benchmark benchmark = Opened(Uri("reduce_add16_16"));
  // tmp = 0; tmp += ...; out = tmp: one number per m.
  const std::string scalar =
      "for m in 16 : L0\n"
      " for k in 16 : L1\n"
      "  %1[m] <- add(%0)\n"
      " %2[m] <- write(%1)\n";
  EXPECT_EQ(TreeText(benchmark.start, {}), scalar);
  EXPECT_EQ(benchmark.start.ScratchBytes(), 1 * sizeof(float));

  // A tile of 8: set(tmp, 0) twice, eight sums at a time.
  AgentWalk walk = Walked(benchmark, "split_8,down,swap_down");
  EXPECT_EQ(TreeText(walk.tree(), {}),
            "for m in 2 : L0\n"
            " for k in 16 : L1\n"
            "  for m' in 8 : L2\n"
            "   %1[m] <- add(%0)\n"
            " for m' in 8 : L4\n"
            "  %2[m] <- write(%1)\n");
  EXPECT_EQ(walk.tree().ScratchBytes(), 8 * sizeof(float));
  ExpectSameResult(walk.tree(), benchmark.start);

  // set(out, 0) first: all sixteen sums at once. From the tile, k moves outermost, then m is merged
  // in both nests.
  const auto apply = [&](std::string_view actions) {
    const auto parsed = ParseActionList(actions);
    for (const Action& action : *parsed) {
      const auto applied = walk.Apply(action);
      ASSERT_TRUE(applied.has_value()) << applied.error().message << TreeText(walk.tree(), {});
    }
  };
  apply("up,swap_up,down,down,merge,down,down,merge");
  EXPECT_EQ(TreeText(walk.tree(), {}),
            "for k in 16 : L0\n"
            " for m in 16 : L1\n"
            "  %1[m] <- add(%0)\n"
            "for m in 16 : L3\n"
            " %2[m] <- write(%1)\n");
  EXPECT_EQ(walk.tree().ScratchBytes(), 16 * sizeof(float));
  ExpectSameResult(walk.tree(), benchmark.start);

  apply("up,swap_up");  // and back
  EXPECT_EQ(TreeText(walk.tree(), {}), scalar);
}

// The article's figures: 1584 sums for all of M = 33 and N = 48, or 256 for tiles of 8 x 32, which
// the tails share.
TEST(ProgramDataset, TheArticlesTileHolds256Sums) {
  const LoopTree start = Opened(Uri("positive_product33_48_64")).start;
  constexpr DimId kM = 0, kN = 2;
  constexpr NodeId kSum = 5;
  const auto sums = [](const LoopTree& tree) {
    return tree.BufferExtent(kSum, kM) * tree.BufferExtent(kSum, kN);
  };
  const LoopTree whole = *Swap(start, 0, 1);  // k, m, n
  EXPECT_EQ(sums(whole), 1584);
  // m 4 r 1 and n 1 r 16 around k, then m 8 and n 32 inside.
  LoopTree tree = *SplitLoop(start, 0, 8);  // m, m', k, n; the write: m, m', n
  const auto last = [](const LoopTree& of) { return static_cast<TreeRef>(of.nodes().size() - 2); };
  tree = *SplitLoop(tree, last(tree), 32);  // the write's n
  tree = *SplitLoop(tree, 3, 32);           // m, m', k, n, n'
  tree = *Swap(tree, 2, 3);                 // m, m', n, k, n': the write joins n
  tree = *Swap(tree, 1, 2);                 // m, n, m', k, n'
  tree = *Swap(tree, 2, 3);                 // m, n, k, m', n'
  EXPECT_EQ(sums(tree), 256);
  EXPECT_EQ(tree.nodes()[0].tail, 1);
  EXPECT_EQ(tree.nodes()[1].tail, 16);
  ExpectSameResult(tree, start);
  ExpectSameResult(whole, start);
}

}  // namespace
}  // namespace loopfleet::looptree
