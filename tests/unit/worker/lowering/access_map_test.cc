#include "worker/lowering/access_map.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/lowering/program_zoo.h"

namespace loopfleet::worker {
namespace {

using looptree::AffineTerm;
using looptree::Op;

TEST(AccessMap, ReadsAreTheirTensors) {
  ProgramBuilder b;
  const auto m = b.Dim("m", 4);
  const auto n = b.Dim("n", 5);
  const auto x = b.Read({m, n});
  b.Write(b.Apply(Op::kAbs, {x}, {m, n}), {m, n});
  const auto source = ResolveOperand(PlainTree(b.program()), x);
  const auto& map = std::get<AccessMap>(source);
  EXPECT_EQ(map.stored, x);
  EXPECT_TRUE(map.indices[0].IsIdentityOf(m));
  EXPECT_TRUE(map.indices[1].IsIdentityOf(n));
}

TEST(AccessMap, ConstantsAreNumbers) {
  ProgramBuilder b;
  const auto m = b.Dim("m", 4);
  const auto x = b.Read({m});
  const auto half = b.Constant(0.5, {m});
  b.Write(b.Apply(Op::kMultiply, {x, half}, {m}), {m});
  const auto source = ResolveOperand(PlainTree(b.program()), half);
  EXPECT_EQ(std::get<FoldedConstant>(source).value, 0.5);
}

TEST(AccessMap, ViewsOfViewsAreOneIndex) {
  ProgramBuilder b;
  const auto i = b.Dim("i", 24);
  const auto r = b.Dim("r", 24);
  const auto e = b.Dim("e", 8);
  const auto x = b.Read({i});
  const auto reversed = b.View(x, {r}, {{.input_dim = i, .terms = {{r, -1}}, .constant = 23}});
  const auto third = b.View(reversed, {e}, {{.input_dim = r, .terms = {{e, 3}}, .constant = 2}});
  b.Write(third, {e});
  const auto source = ResolveOperand(PlainTree(b.program()), third);
  const auto& map = std::get<AccessMap>(source);
  EXPECT_EQ(map.stored, x);
  ASSERT_EQ(map.indices.size(), 1U);
  EXPECT_EQ(map.indices[0].constant, 21);  // 23 - (2 + 3 e)
  EXPECT_EQ(map.indices[0].terms, (std::vector<AffineTerm>{{e, -3}}));
}

}  // namespace
}  // namespace loopfleet::worker
