#include "bench/corpus/programs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::bench {
namespace {

using looptree::DimId;
using looptree::LoopTree;
using looptree::Node;
using looptree::NodeId;
using looptree::Op;
using looptree::Program;

class Builder {
 public:
  DimId Dim(const std::string& name, std::int64_t size) {
    program_.dims.push_back({name, size});
    return static_cast<DimId>(program_.dims.size() - 1);
  }
  NodeId Read(std::vector<DimId> dims) {
    const NodeId node = Add({.op = Op::kRead, .dims = std::move(dims)});
    program_.inputs.push_back(node);
    return node;
  }
  NodeId Compute(Op op, std::vector<NodeId> inputs, std::vector<DimId> dims) {
    return Add({.op = op, .inputs = std::move(inputs), .dims = std::move(dims)});
  }
  void Write(NodeId input, std::vector<DimId> dims) {
    program_.outputs.push_back(Compute(Op::kWrite, {input}, std::move(dims)));
  }

  // Loops each node over its own and its reduced dims, in the order of their creation.
  LoopTree Plain() const {
    looptree::Schedule schedule(program_.nodes.size());
    for (NodeId node = 0; node < program_.nodes.size(); ++node) {
      if (program_.nodes[node].op == Op::kRead) continue;
      std::vector<DimId> dims = program_.nodes[node].dims;
      for (const DimId dim : program_.ReducedDims(node)) dims.push_back(dim);
      std::ranges::sort(dims);
      for (const DimId dim : dims) {
        schedule[node].loops.push_back({.dim = dim, .size = program_.dims[dim].size});
      }
    }
    auto tree = LoopTree::Build(std::make_shared<Program>(program_), std::move(schedule));
    LF_CHECK(tree.has_value(), "{}", tree.error().message);
    return *std::move(tree);
  }

 private:
  NodeId Add(Node node) {
    program_.nodes.push_back(std::move(node));
    return static_cast<NodeId>(program_.nodes.size() - 1);
  }
  Program program_;
};

LoopTree Chain() {
  Builder b;
  const DimId m = b.Dim("m", 64), k = b.Dim("k", 48), n = b.Dim("n", 40), p = b.Dim("p", 56);
  const NodeId first = b.Compute(
      Op::kAdd, {b.Compute(Op::kMultiply, {b.Read({m, k}), b.Read({k, n})}, {m, k, n})}, {m, n});
  const NodeId product = b.Compute(Op::kMultiply, {first, b.Read({n, p})}, {m, n, p});
  b.Write(b.Compute(Op::kAdd, {product}, {m, p}), {m, p});
  return b.Plain();
}

LoopTree Transpose() {
  Builder b;
  const DimId m = b.Dim("m", 200), n = b.Dim("n", 120);
  b.Write(b.Compute(Op::kCopy, {b.Read({m, n})}, {n, m}), {n, m});
  return b.Plain();
}

LoopTree Softmax() {
  Builder b;
  const DimId m = b.Dim("m", 32), n = b.Dim("n", 100);
  const NodeId x = b.Read({m, n});
  const NodeId high = b.Compute(Op::kMax, {x}, {m});
  const NodeId shifted = b.Compute(Op::kSubtract, {x, high}, {m, n});
  const NodeId power = b.Compute(Op::kExp, {shifted}, {m, n});
  const NodeId sum = b.Compute(Op::kAdd, {power}, {m});
  b.Write(b.Compute(Op::kDivide, {power, sum}, {m, n}), {m, n});
  return b.Plain();
}

LoopTree BiasAndRamp() {
  Builder b;
  const DimId m = b.Dim("m", 50), k = b.Dim("k", 64), n = b.Dim("n", 72);
  const NodeId product = b.Compute(Op::kMultiply, {b.Read({m, k}), b.Read({k, n})}, {m, k, n});
  const NodeId sum = b.Compute(Op::kAdd, {product}, {m, n});
  const NodeId biased = b.Compute(Op::kAdd, {sum, b.Read({n})}, {m, n});
  b.Write(b.Compute(Op::kMax, {biased, b.Read({})}, {m, n}), {m, n});
  return b.Plain();
}

LoopTree RowStatistics() {
  Builder b;
  const DimId m = b.Dim("m", 60), n = b.Dim("n", 130);
  const NodeId x = b.Read({m, n});
  b.Write(b.Compute(Op::kMin, {x}, {m}), {m});
  b.Write(b.Compute(Op::kMax, {x}, {m}), {m});
  const NodeId square = b.Compute(Op::kMultiply, {x, x}, {m, n});
  b.Write(b.Compute(Op::kSqrt, {b.Compute(Op::kAdd, {square}, {m})}, {m}), {m});
  return b.Plain();
}

LoopTree CubeSum() {
  Builder b;
  const DimId i = b.Dim("i", 24), j = b.Dim("j", 30), k = b.Dim("k", 36);
  b.Write(b.Compute(Op::kAdd, {b.Read({i, j, k})}, {j}), {j});
  return b.Plain();
}

LoopTree BatchOfProducts() {
  Builder b;
  const DimId batch = b.Dim("b", 6), m = b.Dim("m", 20), k = b.Dim("k", 33), n = b.Dim("n", 28);
  const NodeId product =
      b.Compute(Op::kMultiply, {b.Read({batch, m, k}), b.Read({batch, k, n})}, {batch, m, k, n});
  b.Write(b.Compute(Op::kAdd, {product}, {batch, m, n}), {batch, m, n});
  return b.Plain();
}

}  // namespace

LoopTree SumOfPositiveProducts(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  Builder b;
  const DimId m = b.Dim("m", rows), k = b.Dim("k", depth), n = b.Dim("n", columns);
  const NodeId product = b.Compute(Op::kMultiply, {b.Read({m, k}), b.Read({k, n})}, {m, k, n});
  const NodeId positive = b.Compute(Op::kMax, {product, b.Read({})}, {m, k, n});
  b.Write(b.Compute(Op::kAdd, {positive}, {m, n}), {m, n});
  return b.Plain();
}

LoopTree VectorSum(std::int64_t size) {
  Builder b;
  const DimId n = b.Dim("n", size);
  b.Write(b.Compute(Op::kAdd, {b.Read({n}), b.Read({n})}, {n}), {n});
  return b.Plain();
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
