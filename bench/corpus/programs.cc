#include "bench/corpus/programs.h"

#include <utility>

#include "common/base/check.h"
#include "common/looptree/tree/program_builder.h"

namespace loopfleet::bench {
namespace {

using looptree::DimId;
using looptree::LoopTree;
using looptree::NodeId;
using looptree::Op;
using looptree::ProgramBuilder;

// One loop per dim, in the order of declaration.
LoopTree Plain(ProgramBuilder b) {
  auto tree = std::move(b).Build(looptree::Limits{});
  LF_CHECK(tree.has_value(), "{}", tree.error().message);
  return *std::move(tree);
}

LoopTree Chain() {
  ProgramBuilder b;
  const DimId m = b.Dim("m", 64), k = b.Dim("k", 48), n = b.Dim("n", 40), p = b.Dim("p", 56);
  const NodeId first = b.Apply(
      Op::kAdd, {b.Apply(Op::kMultiply, {b.Read({m, k}), b.Read({k, n})}, {m, k, n})}, {m, n});
  const NodeId product = b.Apply(Op::kMultiply, {first, b.Read({n, p})}, {m, n, p});
  b.Write(b.Apply(Op::kAdd, {product}, {m, p}), {m, p});
  return Plain(std::move(b));
}

LoopTree Transpose() {
  ProgramBuilder b;
  const DimId m = b.Dim("m", 200), n = b.Dim("n", 120);
  b.Write(b.Apply(Op::kCopy, {b.Read({m, n})}, {n, m}), {n, m});
  return Plain(std::move(b));
}

LoopTree Softmax() {
  ProgramBuilder b;
  const DimId m = b.Dim("m", 32), n = b.Dim("n", 100);
  const NodeId x = b.Read({m, n});
  const NodeId high = b.Apply(Op::kMax, {x}, {m});
  const NodeId shifted = b.Apply(Op::kSubtract, {x, high}, {m, n});
  const NodeId power = b.Apply(Op::kExp, {shifted}, {m, n});
  const NodeId sum = b.Apply(Op::kAdd, {power}, {m});
  b.Write(b.Apply(Op::kDivide, {power, sum}, {m, n}), {m, n});
  return Plain(std::move(b));
}

LoopTree BiasAndRamp() {
  ProgramBuilder b;
  const DimId m = b.Dim("m", 50), k = b.Dim("k", 64), n = b.Dim("n", 72);
  const NodeId product = b.Apply(Op::kMultiply, {b.Read({m, k}), b.Read({k, n})}, {m, k, n});
  const NodeId sum = b.Apply(Op::kAdd, {product}, {m, n});
  const NodeId biased = b.Apply(Op::kAdd, {sum, b.Read({n})}, {m, n});
  b.Write(b.Apply(Op::kMax, {biased, b.Read({})}, {m, n}), {m, n});
  return Plain(std::move(b));
}

LoopTree RowStatistics() {
  ProgramBuilder b;
  const DimId m = b.Dim("m", 60), n = b.Dim("n", 130);
  const NodeId x = b.Read({m, n});
  b.Write(b.Apply(Op::kMin, {x}, {m}), {m});
  b.Write(b.Apply(Op::kMax, {x}, {m}), {m});
  const NodeId square = b.Apply(Op::kMultiply, {x, x}, {m, n});
  b.Write(b.Apply(Op::kSqrt, {b.Apply(Op::kAdd, {square}, {m})}, {m}), {m});
  return Plain(std::move(b));
}

LoopTree CubeSum() {
  ProgramBuilder b;
  const DimId i = b.Dim("i", 24), j = b.Dim("j", 30), k = b.Dim("k", 36);
  b.Write(b.Apply(Op::kAdd, {b.Read({i, j, k})}, {j}), {j});
  return Plain(std::move(b));
}

LoopTree BatchOfProducts() {
  ProgramBuilder b;
  const DimId batch = b.Dim("b", 6), m = b.Dim("m", 20), k = b.Dim("k", 33), n = b.Dim("n", 28);
  const NodeId product =
      b.Apply(Op::kMultiply, {b.Read({batch, m, k}), b.Read({batch, k, n})}, {batch, m, k, n});
  b.Write(b.Apply(Op::kAdd, {product}, {batch, m, n}), {batch, m, n});
  return Plain(std::move(b));
}

}  // namespace

LoopTree SumOfPositiveProducts(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  ProgramBuilder b;
  const DimId m = b.Dim("m", rows), k = b.Dim("k", depth), n = b.Dim("n", columns);
  const NodeId product = b.Apply(Op::kMultiply, {b.Read({m, k}), b.Read({k, n})}, {m, k, n});
  const NodeId positive = b.Apply(Op::kMax, {product, b.Read({})}, {m, k, n});
  b.Write(b.Apply(Op::kAdd, {positive}, {m, n}), {m, n});
  return Plain(std::move(b));
}

LoopTree VectorSum(std::int64_t size) {
  ProgramBuilder b;
  const DimId n = b.Dim("n", size);
  b.Write(b.Apply(Op::kAdd, {b.Read({n}), b.Read({n})}, {n}), {n});
  return Plain(std::move(b));
}

std::vector<NamedProgram> ProgramKinds() {
  return {{"sum of two vectors", VectorSum(10000)},
          {"two products", Chain()},
          {"transposing copy", Transpose()},
          {"softmax of rows", Softmax()},
          {"product, bias, ramp", BiasAndRamp()},
          {"row statistics", RowStatistics()},
          {"sum over two of three dims", CubeSum()},
          {"batch of products", BatchOfProducts()},
          {"positive products", SumOfPositiveProducts(33, 48, 64)}};
}

}  // namespace loopfleet::bench
