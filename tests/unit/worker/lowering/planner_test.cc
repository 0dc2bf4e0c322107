#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/looptree/actions/walk.h"
#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/text/text.h"
#include "tests/unit/worker/lowering/program_zoo.h"
#include "worker/lowering/kernel_plan.h"

namespace loopfleet::worker {
namespace {

using looptree::LoopSpec;
using looptree::LoopTree;
using looptree::Op;
using looptree::Program;
using looptree::Schedule;

// The sum over k of a[m, k] b[k, n], with m = 33, k = 16, n = 48: `loops` for product and sum,
// `write` for the write.
LoopTree MatrixProduct(std::vector<LoopSpec> loops, std::vector<LoopSpec> write) {
  ProgramBuilder b;
  const auto m = b.Dim("m", 33);
  const auto k = b.Dim("k", 16);
  const auto n = b.Dim("n", 48);
  const auto x = b.Read({m, k});
  const auto y = b.Read({k, n});
  const auto product = b.Apply(Op::kMultiply, {x, y}, {m, k, n});
  const auto sum = b.Apply(Op::kAdd, {product}, {m, n});
  const auto result = b.Write(sum, {m, n});
  Schedule schedule(b.program().nodes.size());
  schedule[product].loops = loops;
  schedule[sum].loops = std::move(loops);
  schedule[result].loops = std::move(write);
  return LoopTree::Build(std::make_shared<Program>(b.program()), schedule).value();
}

constexpr looptree::DimId kM = 0;
constexpr looptree::DimId kK = 1;
constexpr looptree::DimId kN = 2;
LoopSpec Loop(looptree::DimId dim, std::int64_t size, std::int64_t tail = 0) {
  return {.dim = dim, .size = size, .tail = tail};
}

const PlanBuffer* ScratchOf(const KernelPlan& plan) {
  const PlanBuffer* found = nullptr;
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.role != BufferSpec::Role::kScratch) continue;
    EXPECT_EQ(found, nullptr) << "more than one intermediate";
    found = &buffer;
  }
  return found;
}

TEST(Planner, IntermediatesAreAsLargeAsTheirScope) {
  const auto row = PlanKernel(
      MatrixProduct({Loop(kM, 33), Loop(kK, 16), Loop(kN, 48)}, {Loop(kM, 33), Loop(kN, 48)}));
  EXPECT_EQ(ScratchOf(*row)->element_count, 48);  // inside m
  EXPECT_EQ(row->scratch_bytes, 48U * 4);

  const auto element = PlanKernel(
      MatrixProduct({Loop(kM, 33), Loop(kN, 48), Loop(kK, 16)}, {Loop(kM, 33), Loop(kN, 48)}));
  EXPECT_EQ(ScratchOf(*element)->element_count, 1);
  EXPECT_EQ(element->scratch_bytes, 64U);  // a whole cache line

  const auto whole = PlanKernel(
      MatrixProduct({Loop(kK, 16), Loop(kM, 33), Loop(kN, 48)}, {Loop(kM, 33), Loop(kN, 48)}));
  EXPECT_EQ(ScratchOf(*whole)->element_count, 33 * 48);

  // m in blocks of 8: an iteration of the shared loop covers 8 rows.
  const auto block =
      PlanKernel(MatrixProduct({Loop(kM, 4, 1), Loop(kK, 16), Loop(kM, 8), Loop(kN, 48)},
                               {Loop(kM, 4, 1), Loop(kM, 8), Loop(kN, 48)}));
  EXPECT_EQ(ScratchOf(*block)->element_count, 8 * 48);
}

TEST(Planner, KnowsEveryExtentThatATailCanLeave) {
  // 33 = 4 * 8 + 1; inside, 8 = 2 * 3 + 2 and 1 = 0 * 3 + 1; innermost, 3, 2 or 1 are left.
  const auto plan = PlanKernel(
      MatrixProduct({Loop(kM, 4, 1), Loop(kM, 2, 2), Loop(kK, 16), Loop(kN, 48), Loop(kM, 3)},
                    {Loop(kM, 33), Loop(kN, 48)}));
  ASSERT_TRUE(plan.has_value());
  using Extents = std::vector<std::int64_t>;
  EXPECT_EQ(plan->loops[0].step, 8);
  EXPECT_EQ(plan->loops[0].extents, Extents{33});
  EXPECT_EQ(plan->loops[1].step, 3);
  EXPECT_EQ(plan->loops[1].extents, (Extents{8, 1}));
  EXPECT_EQ(plan->loops[4].step, 1);
  EXPECT_EQ(plan->loops[4].extents, (Extents{3, 2, 1}));
}

TEST(Planner, AccumulatorsArePreparedBeforeTheOutermostReducedLoop) {
  const auto plan = PlanKernel(MatrixProduct({Loop(kM, 33), Loop(kK, 4), Loop(kN, 48), Loop(kK, 4)},
                                             {Loop(kM, 33), Loop(kN, 48)}));
  ASSERT_TRUE(plan.has_value());
  const LoopStep& m = std::get<LoopStep>(plan->steps.at(0).what);
  EXPECT_TRUE(m.prepare.empty());
  const LoopStep& k = std::get<LoopStep>(m.steps.at(0).what);
  ASSERT_EQ(k.prepare.size(), 1U);
  const LoopStep& fill = std::get<LoopStep>(k.prepare[0].what);
  EXPECT_EQ(plan->loops[fill.loop].dim, kN);
  EXPECT_FALSE(plan->loops[fill.loop].ref.has_value());
  const Statement& statement = std::get<Body>(fill.steps.at(0).what).statements.at(0);
  EXPECT_EQ(std::get<Literal>(statement.operands.at(0)).value, 0.0);
}

TEST(Planner, ValuesUsedOnlyInTheirBodyHaveNoBuffer) {
  const auto plan = PlanKernel(
      MatrixProduct({Loop(kM, 33), Loop(kK, 16), Loop(kN, 48)}, {Loop(kM, 33), Loop(kN, 48)}));
  const LoopStep& m = std::get<LoopStep>(plan->steps.at(0).what);
  const LoopStep& k = std::get<LoopStep>(m.steps.at(0).what);
  const LoopStep& n = std::get<LoopStep>(k.steps.at(0).what);
  const Body& body = std::get<Body>(n.steps.at(0).what);
  ASSERT_EQ(body.statements.size(), 2U);
  EXPECT_FALSE(body.statements[0].target.has_value());
  EXPECT_TRUE(std::holds_alternative<ValueOf>(body.statements[1].operands.at(0)));
  EXPECT_EQ(body.statements[1].reduced, std::vector<LoopId>{k.loop});
  // b[k, n]: stride 48 along k, 1 along n.
  const Access& access = std::get<Access>(body.statements[0].operands.at(1));
  EXPECT_EQ(access.terms, (std::vector<AccessTerm>{{k.loop, 48}, {n.loop, 1}}));
}

TEST(Planner, ScratchStartsOnCacheLines) {
  SplitMix64 random(5);
  for (const ZooProgram& zoo : ProgramZoo()) {
    for (int i = 0; i < 20; ++i) {
      const auto plan = PlanKernel(RandomTree(zoo.program, random));
      ASSERT_TRUE(plan.has_value()) << plan.error().message;
      for (const PlanBuffer& buffer : plan->buffers) {
        if (buffer.role != BufferSpec::Role::kScratch) continue;
        EXPECT_EQ(buffer.scratch_offset % 64, 0);
        EXPECT_LE(static_cast<std::uint64_t>(buffer.scratch_offset + buffer.element_count * 4),
                  plan->scratch_bytes);
      }
    }
  }
}

// The article's example: positive products summed over k, m = 33, n = 48. "We start with 1584
// elements (all of N and M) but can quickly squash that down to 256 (only 8 of M and 32 of N)."
TEST(Planner, TheArticlesTilesTake256ElementsInsteadOf1584) {
  ProgramBuilder b;
  const auto m = b.Dim("m", 33);
  const auto n = b.Dim("n", 48);
  const auto k = b.Dim("k", 64);
  const auto x = b.Read({m, k});
  const auto y = b.Read({k, n});
  const auto product = b.Apply(Op::kMultiply, {x, y}, {m, n, k});
  const auto positive = b.Apply(Op::kMax, {product, b.Read({})}, {m, n, k});
  b.Write(b.Apply(Op::kAdd, {positive}, {m, n}), {m, n});
  const looptree::IrText start{looptree::IrTextOf(PlainTree(b.program()))};  // m, n, k
  const auto scratch_after = [&](const char* actions) -> std::uint64_t {
    const auto replayed = looptree::Replay(start, *looptree::ParseActionList(actions));
    EXPECT_TRUE(replayed.has_value()) << actions;
    const auto plan = PlanKernel(replayed->tree);
    EXPECT_EQ(ScratchOf(*plan)->element_count * 4, static_cast<std::int64_t>(plan->scratch_bytes));
    return plan->scratch_bytes / 4;
  };
  // k outermost: no sum is complete before the last k.
  EXPECT_EQ(scratch_after("down,down,swap_up,swap_up"), 1584U);
  // m in blocks of 8 with a tail of 1, n in blocks of 32 with a tail of 16; k round both tiles.
  EXPECT_EQ(scratch_after("split_8,down,swap_down,up,split_32,down,down,down,swap_up,swap_up"),
            256U);
}

TEST(Planner, IntermediatesThatDoNotLiveTogetherShareMemory) {
  // x -> a -> c -> d, each in a nest of its own: the last reader of a computes c.
  ProgramBuilder b;
  const auto m = b.Dim("m", 100);
  auto value = b.Read({m});
  for (int i = 0; i < 4; ++i) value = b.Apply(Op::kNegate, {value}, {m});
  b.Write(value, {m});
  Schedule schedule(b.program().nodes.size());
  for (std::size_t node = 1; node < schedule.size(); ++node) {
    schedule[node].loops = {{.dim = m, .size = 100, .reusable = false}};
  }
  const auto plan =
      PlanKernel(LoopTree::Build(std::make_shared<Program>(b.program()), schedule).value());
  ASSERT_TRUE(plan.has_value());
  std::vector<std::int64_t> offsets;
  for (const PlanBuffer& buffer : plan->buffers) {
    if (buffer.role == BufferSpec::Role::kScratch) offsets.push_back(buffer.scratch_offset);
  }
  EXPECT_EQ(offsets, (std::vector<std::int64_t>{0, 448, 0, 448}));
  EXPECT_EQ(plan->scratch_bytes, 896U);  // two of 400 bytes, on cache lines
}

}  // namespace
}  // namespace loopfleet::worker
