#include "worker/lowering/loop_nest.h"

#include <gtest/gtest.h>

#include <string>

#include "common/looptree/datasets/benchmark.h"
#include "tests/unit/worker/lowering/program_zoo.h"

namespace loopfleet::worker {
namespace {

constexpr VectorShape kAvx512{.lanes = 16, .registers = 32, .masks = true};
constexpr VectorShape kAvx2{.lanes = 8, .registers = 16, .masks = true};
constexpr VectorShape kBaseline{.lanes = 4, .registers = 16, .masks = false};

KernelPlan PlanOf(const std::string& uri) {
  const auto benchmark = looptree::OpenBenchmark(looptree::BenchmarkUri{uri});
  return PlanKernel(benchmark.value().start).value();
}

// Descends along first steps to the first loop that starts a nest.
Nest FirstNest(const KernelPlan& plan) {
  const std::vector<Step>* steps = &plan.steps;
  while (true) {
    const LoopStep& loop = std::get<LoopStep>(steps->front().what);
    if (auto nest = NestAt(loop)) return *nest;
    steps = &loop.steps;
  }
}

std::vector<Piece> Pieces(std::int64_t extent, const VectorShape& shape) {
  return PiecesOf(extent, shape);
}

TEST(Pieces, CoverEveryExtentOnce) {
  for (const VectorShape& shape : {kAvx512, kAvx2, kBaseline}) {
    for (std::int64_t extent = 1; extent < 70; ++extent) {
      std::int64_t covered = 0;
      for (const Piece& piece : PiecesOf(extent, shape)) {
        EXPECT_EQ(piece.offset, covered);
        EXPECT_LE(piece.active, piece.width);
        EXPECT_LE(piece.width, shape.lanes);
        EXPECT_TRUE(shape.masks || piece.active == piece.width);
        covered += piece.active;
      }
      EXPECT_EQ(covered, extent);
    }
  }
}

TEST(Pieces, UseMasksWhereThereAreSome) {
  EXPECT_EQ(Pieces(23, kAvx512), (std::vector<Piece>{{0, 16, 16}, {16, 8, 7}}));
  EXPECT_EQ(Pieces(7, kBaseline), (std::vector<Piece>{{0, 4, 4}, {4, 2, 2}, {6, 1, 1}}));
  EXPECT_EQ(Pieces(9, kAvx2), (std::vector<Piece>{{0, 8, 8}, {8, 1, 1}}));
}

TEST(Nest, EndsWhereLoopsHaveCompany) {
  const KernelPlan plan = PlanOf("benchmark://mm-v0/mm8_64_16");
  const LoopStep& m = std::get<LoopStep>(plan.steps.front().what);
  EXPECT_FALSE(NestAt(m).has_value());  // it contains the product's loops and the write's
  const Nest nest = FirstNest(plan);
  EXPECT_EQ(nest.loops.size(), 2U);
  EXPECT_EQ(nest.body->statements.size(), 2U);
  EXPECT_TRUE(nest.Reduces(nest.loops[0]->loop));
  EXPECT_FALSE(nest.Reduces(nest.loops[1]->loop));
}

TEST(RegisterBlock, TakesTheWholeRowIfItFits) {
  const KernelPlan plan = PlanOf("benchmark://mm-v0/mm8_64_16");
  const Nest nest = FirstNest(plan);
  for (const VectorShape& shape : {kAvx512, kAvx2}) {
    ASSERT_EQ(BlockLoopOf(plan, nest, shape), 0U);
    const auto block = BlockAt(plan, nest, 0, TileInside(plan, nest, 0), shape);
    ASSERT_TRUE(block.has_value());
    EXPECT_TRUE(block->rows.empty());
    ASSERT_TRUE(block->columns.has_value());
    EXPECT_EQ(block->columns->extent, 64);
    EXPECT_FALSE(block->lanes_reduce);
  }
  // 16 registers of four lanes: the row does not fit, and no loop inside reduces.
  EXPECT_EQ(BlockLoopOf(plan, nest, kBaseline), std::nullopt);
}

TEST(RegisterBlock, ReducesInLanesWhereNothingElseIsLeft) {
  ProgramBuilder b;
  const auto m = b.Dim("m", 3);
  const auto k = b.Dim("k", 100);
  b.Write(b.Apply(looptree::Op::kAdd, {b.Read({m, k})}, {m}), {m});
  const KernelPlan plan = PlanKernel(PlainTree(b.program())).value();
  const Nest nest = FirstNest(plan);
  ASSERT_EQ(BlockLoopOf(plan, nest, kAvx512), 0U);
  const auto block = BlockAt(plan, nest, 0, {}, kAvx512);
  ASSERT_TRUE(block.has_value());
  EXPECT_TRUE(block->lanes_reduce);
  EXPECT_EQ(block->reduce_width, 16U);
}

}  // namespace
}  // namespace loopfleet::worker
