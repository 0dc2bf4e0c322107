#include "worker/lowering/direct_writes.h"

#include <gtest/gtest.h>

#include <string>

#include "common/looptree/actions/walk.h"
#include "tests/unit/worker/lowering/program_zoo.h"

namespace loopfleet::worker {
namespace {

using looptree::Op;

KernelPlan PlanOf(const std::string& uri, const std::string& actions) {
  return PlanKernel(looptree::Replay(looptree::BenchmarkUri{uri},
                                     looptree::ParseActionList(actions).value())
                        .value()
                        .tree)
      .value();
}

// How many reductions accumulate in outputs and in scratch, and the number of bodies.
struct Seen {
  int to_output = 0;
  int to_scratch = 0;
  int bodies = 0;
};
void Round(const KernelPlan& plan, const std::vector<Step>& steps, Seen& seen) {
  for (const Step& step : steps) {
    if (const auto* loop = std::get_if<LoopStep>(&step.what)) {
      Round(plan, loop->steps, seen);
      continue;
    }
    ++seen.bodies;
    for (const Statement& statement : std::get<Body>(step.what).statements) {
      if (statement.reduced.empty()) continue;
      const bool output = plan.buffers[statement.target->buffer].role == BufferSpec::Role::kOutput;
      ++(output ? seen.to_output : seen.to_scratch);
    }
  }
}
Seen SeenIn(KernelPlan plan) {
  WriteDirectly(plan);
  Seen seen;
  Round(plan, plan.steps, seen);
  return seen;
}

TEST(DirectWrites, TakeTheCopyOfAProductAway) {
  for (const char* actions : {"", "swap_down", "down,swap_down", "split_4,down,swap_down"}) {
    const Seen seen = SeenIn(PlanOf("benchmark://mm-v0/mm8_24_16", actions));
    EXPECT_EQ(seen.to_output, 1) << actions;
    EXPECT_EQ(seen.to_scratch, 0) << actions;
    EXPECT_EQ(seen.bodies, 1) << actions;
  }
}

TEST(DirectWrites, KeepTheScratchArea) {
  KernelPlan plan = PlanOf("benchmark://mm-v0/mm8_24_16", "");
  const std::uint64_t before = plan.scratch_bytes;
  WriteDirectly(plan);
  EXPECT_EQ(plan.scratch_bytes, before);
}

TEST(DirectWrites, LeaveAResultWithAnotherReader) {
  ProgramBuilder b;
  const auto m = b.Dim("m", 6);
  const auto k = b.Dim("k", 10);
  const auto sum = b.Apply(Op::kAdd, {b.Read({m, k})}, {m});
  b.Write(sum, {m});
  b.Write(b.Apply(Op::kNegate, {sum}, {m}), {m});
  const Seen seen = SeenIn(PlanKernel(PlainTree(b.program())).value());
  EXPECT_EQ(seen.to_output, 0);
  EXPECT_EQ(seen.to_scratch, 1);
}

TEST(DirectWrites, LeaveAResultThatIsChangedOnTheWay) {
  ProgramBuilder b;
  const auto m = b.Dim("m", 6);
  const auto k = b.Dim("k", 10);
  b.Write(b.Apply(Op::kSqrt, {b.Apply(Op::kAdd, {b.Read({m, k})}, {m})}, {m}), {m});
  EXPECT_EQ(SeenIn(PlanKernel(PlainTree(b.program())).value()).to_output, 0);
}

// The copy lies in a loop that moves the output and that the reduction does not lie in.
TEST(DirectWrites, LeaveAResultThatIsRepeatedInALoopOfItsOwn) {
  const Seen seen = SeenIn(PlanKernel(RepeatedSumTree()).value());
  EXPECT_EQ(seen.to_output, 0);
  EXPECT_EQ(seen.to_scratch, 1);
}

}  // namespace
}  // namespace loopfleet::worker
