#include "tests/unit/worker/lowering/program_zoo.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::worker {
namespace {

using looptree::Annotation;
using looptree::DimId;
using looptree::LoopSpec;
using looptree::LoopTree;
using looptree::NodeId;
using looptree::NodeSchedule;
using looptree::Op;
using looptree::Program;
using looptree::Schedule;

Program MatrixProduct(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  ProgramBuilder b;
  const DimId m = b.Dim("m", rows);
  const DimId k = b.Dim("k", depth);
  const DimId n = b.Dim("n", columns);
  const NodeId a = b.Read({m, k});
  const NodeId w = b.Read({k, n});
  b.Write(b.Apply(Op::kAdd, {b.Apply(Op::kMultiply, {a, w}, {m, k, n})}, {m, n}), {m, n});
  return b.program();
}

Program Chain() {
  ProgramBuilder b;
  const DimId m = b.Dim("m", 7);
  const DimId k = b.Dim("k", 18);
  const DimId n = b.Dim("n", 5);
  const DimId p = b.Dim("p", 21);
  const NodeId a = b.Read({m, k});
  const NodeId w = b.Read({k, n});
  const NodeId v = b.Read({n, p});
  const NodeId first = b.Apply(Op::kAdd, {b.Apply(Op::kMultiply, {a, w}, {m, k, n})}, {m, n});
  const NodeId product = b.Apply(Op::kMultiply, {first, v}, {m, n, p});
  b.Write(b.Apply(Op::kAdd, {product}, {m, p}), {m, p});
  return b.program();
}

Program Pointwise() {
  ProgramBuilder b;
  const DimId m = b.Dim("m", 13);
  const DimId n = b.Dim("n", 37);
  const NodeId x = b.Read({m, n});
  const NodeId y = b.Read({m, n});
  const NodeId difference = b.Apply(Op::kSubtract, {x, y}, {m, n});
  const NodeId absolute = b.Apply(Op::kAbs, {difference}, {m, n});
  const NodeId larger = b.Apply(Op::kMax, {absolute, y}, {m, n});
  b.Write(b.Apply(Op::kNegate, {larger}, {m, n}), {m, n});
  return b.program();
}

Program Transpose() {
  ProgramBuilder b;
  const DimId m = b.Dim("m", 19);
  const DimId n = b.Dim("n", 11);
  const NodeId x = b.Read({m, n});
  b.Write(b.Apply(Op::kCopy, {x}, {n, m}), {n, m});
  return b.program();
}

// The rows' extremes added to a vector, the sum of all elements, and the product of the vector:
// three outputs, four reductions.
Program Reductions() {
  ProgramBuilder b;
  const DimId m = b.Dim("m", 9);
  const DimId k = b.Dim("k", 35);
  const NodeId x = b.Read({m, k});
  const NodeId s = b.Read({m});
  const NodeId low = b.Apply(Op::kMin, {x}, {m});
  const NodeId high = b.Apply(Op::kMax, {x}, {m});
  b.Write(b.Apply(Op::kAdd, {low, high, s}, {m}), {m});
  b.Write(b.Apply(Op::kAdd, {x}, {}), {});
  b.Write(b.Apply(Op::kMultiply, {s}, {}), {});
  return b.program();
}

// The article's example: sums only the positive products.
Program SumOfPositiveProducts() {
  ProgramBuilder b;
  const DimId m = b.Dim("m", 33);
  const DimId n = b.Dim("n", 12);
  const DimId k = b.Dim("k", 16);
  const NodeId a = b.Read({m, k});
  const NodeId w = b.Read({k, n});
  const NodeId zero = b.Constant(0, {m, k, n});
  const NodeId product = b.Apply(Op::kMultiply, {a, w}, {m, k, n});
  const NodeId positive = b.Apply(Op::kMax, {product, zero}, {m, k, n});
  b.Write(b.Apply(Op::kAdd, {positive}, {m, n}), {m, n});
  return b.program();
}

Program Convolution1d() {
  ProgramBuilder b;
  const DimId i = b.Dim("i", 40);
  const DimId k = b.Dim("k", 3);
  const DimId o = b.Dim("o", 38);
  const NodeId x = b.Read({i});
  const NodeId window = b.View(x, {k, o}, {{.input_dim = i, .terms = {{o, 1}, {k, 1}}}});
  const NodeId w = b.Read({k});
  const NodeId product = b.Apply(Op::kMultiply, {window, w}, {k, o});
  b.Write(b.Apply(Op::kAdd, {product}, {o}), {o});
  return b.program();
}

Program Convolution2d() {
  ProgramBuilder b;
  const DimId c = b.Dim("c", 3);
  const DimId h = b.Dim("h", 9);
  const DimId w = b.Dim("w", 12);
  const DimId y = b.Dim("y", 4);
  const DimId x = b.Dim("x", 10);
  const DimId i = b.Dim("i", 3);
  const DimId j = b.Dim("j", 3);
  const DimId m = b.Dim("m", 5);
  const NodeId image = b.Read({c, h, w});
  const NodeId window = b.View(image, {c, y, x, i, j},
                               {{.input_dim = c, .terms = {{c, 1}}},
                                {.input_dim = h, .terms = {{y, 2}, {i, 1}}},
                                {.input_dim = w, .terms = {{x, 1}, {j, 1}}}});
  const NodeId filter = b.Read({m, c, i, j});
  const NodeId product = b.Apply(Op::kMultiply, {window, filter}, {c, y, x, i, j, m});
  b.Write(b.Apply(Op::kAdd, {product}, {m, y, x}), {m, y, x});
  return b.program();
}

// A view of an intermediate, reversed, then a view of that view.
Program ViewOfIntermediate() {
  ProgramBuilder b;
  const DimId i = b.Dim("i", 24);
  const DimId r = b.Dim("r", 24);
  const DimId e = b.Dim("e", 8);
  const DimId c = b.Dim("c", 5);
  const NodeId x = b.Read({c, i});
  const NodeId twice = b.Apply(Op::kAdd, {x, x}, {c, i});
  const NodeId reversed = b.View(
      twice, {c, r},
      {{.input_dim = c, .terms = {{c, 1}}}, {.input_dim = i, .terms = {{r, -1}}, .constant = 23}});
  const NodeId third = b.View(
      reversed, {c, e},
      {{.input_dim = c, .terms = {{c, 1}}}, {.input_dim = r, .terms = {{e, 3}}, .constant = 2}});
  b.Write(b.Apply(Op::kNegate, {third}, {c, e}), {c, e});
  b.Write(b.Apply(Op::kMax, {reversed}, {c}), {c});
  return b.program();
}

// Two programs in one: leaves of one can lie inside loops of the other.
Program Unrelated() {
  ProgramBuilder b;
  const DimId k = b.Dim("k", 6);
  const DimId m = b.Dim("m", 5);
  const DimId n = b.Dim("n", 17);
  const NodeId a = b.Read({k, m, n});
  const NodeId c = b.Read({k, n});
  const NodeId d = b.Read({n});
  b.Write(b.Apply(Op::kNegate, {a}, {k, m, n}), {k, m, n});
  b.Write(b.Apply(Op::kAdd, {c}, {n}), {n});
  b.Write(b.Apply(Op::kAbs, {d}, {n}), {n});
  return b.program();
}

// Every operation that rounds.
Program Rounding() {
  ProgramBuilder b;
  const DimId m = b.Dim("m", 6);
  const DimId n = b.Dim("n", 19);
  const NodeId x = b.Read({m, n});
  const NodeId positive =
      b.Apply(Op::kAdd, {b.Apply(Op::kAbs, {x}, {m, n}), b.Constant(1.5, {m, n})}, {m, n});
  const NodeId root = b.Apply(Op::kSqrt, {positive}, {m, n});
  const NodeId logarithm = b.Apply(Op::kLog, {positive}, {m, n});
  const NodeId exponential = b.Apply(Op::kExp, {b.Apply(Op::kNegate, {root}, {m, n})}, {m, n});
  const NodeId quotient = b.Apply(Op::kDivide, {logarithm, root}, {m, n});
  const NodeId inverse = b.Apply(Op::kReciprocal, {positive}, {m, n});
  const NodeId sum = b.Apply(Op::kAdd, {quotient, inverse, exponential}, {m, n});
  b.Write(b.Apply(Op::kAdd, {sum}, {m}), {m});
  b.Write(sum, {n, m});
  return b.program();
}

// Dims of one element, some without loops; a reduction over such a dim only.
Program Ones() {
  ProgramBuilder b;
  const DimId m = b.Dim("m", 1);
  const DimId k = b.Dim("k", 1);
  const DimId n = b.Dim("n", 23);
  const NodeId a = b.Read({m, k});
  const NodeId w = b.Read({k, n});
  b.Write(b.Apply(Op::kAdd, {b.Apply(Op::kMultiply, {a, w}, {m, k, n})}, {m, n}), {m, n});
  return b.program();
}

// A convolution of an image with a border of ones.
Program PaddedConvolution() {
  ProgramBuilder b;
  const DimId c = b.Dim("c", 3);
  const DimId h = b.Dim("h", 5);
  const DimId w = b.Dim("w", 18);
  const DimId y = b.Dim("y", 5);
  const DimId x = b.Dim("x", 18);
  const DimId i = b.Dim("i", 3);
  const DimId j = b.Dim("j", 3);
  const DimId m = b.Dim("m", 4);
  const NodeId image = b.Read({c, h, w});
  const NodeId window = b.GuardedView(image, {c, y, x, i, j},
                                      {{.input_dim = c, .terms = {{c, 1}}},
                                       {.input_dim = h, .terms = {{y, 1}, {i, 1}}, .constant = -1},
                                       {.input_dim = w, .terms = {{x, 1}, {j, 1}}, .constant = -1}},
                                      1);
  const NodeId filter = b.Read({m, c, i, j});
  const NodeId product = b.Apply(Op::kMultiply, {window, filter}, {c, y, x, i, j, m});
  b.Write(b.Apply(Op::kAdd, {product}, {m, y, x}), {m, y, x});
  return b.program();
}

// A window over an intermediate with zeros between and around its elements: what carries a gradient
// back through a convolution with a stride.
Program SpreadConvolution() {
  ProgramBuilder b;
  const DimId i = b.Dim("i", 9);
  const DimId u = b.Dim("u", 21);
  const DimId o = b.Dim("o", 19);
  const DimId k = b.Dim("k", 3);
  const DimId n = b.Dim("n", 5);
  const NodeId x = b.Read({i, n});
  const NodeId twice = b.Apply(Op::kAdd, {x, x}, {i, n});
  const NodeId spread =
      b.GuardedView(twice, {u, n},
                    {{.input_dim = i, .terms = {{u, 1}}, .constant = -2, .divisor = 2},
                     {.input_dim = n, .terms = {{n, 1}}}},
                    0);
  const NodeId window =
      b.View(spread, {o, k, n},
             {{.input_dim = u, .terms = {{o, 1}, {k, 1}}}, {.input_dim = n, .terms = {{n, 1}}}});
  const NodeId product = b.Apply(Op::kMultiply, {window, b.Read({k, n})}, {o, k, n});
  b.Write(b.Apply(Op::kAdd, {product}, {o, n}), {o, n});
  b.Write(b.Apply(Op::kMax, {product}, {n}), {n});
  return b.program();
}

// Rows of an input, then rows of a constant, each plus the row before it.
Program Concatenation() {
  ProgramBuilder b;
  const DimId a = b.Dim("a", 4);
  const DimId d = b.Dim("d", 3);
  const DimId c = b.Dim("c", 7);
  const DimId e = b.Dim("e", 7);
  const DimId n = b.Dim("n", 21);
  const auto rows = [&](DimId of, DimId over,
                        std::int64_t before) -> std::vector<looptree::ViewIndex> {
    return {{.input_dim = of, .terms = {{over, 1}}, .constant = before},
            {.input_dim = n, .terms = {{n, 1}}}};
  };
  const NodeId first = b.GuardedView(b.Read({a, n}), {c, n}, rows(a, c, 0), 0);
  const NodeId second = b.GuardedView(b.Constant(5, {d, n}), {c, n}, rows(d, c, -4), 0);
  const NodeId both = b.Apply(Op::kAdd, {first, second}, {c, n});
  const NodeId here = b.View(both, {e, n}, rows(c, e, 0));
  const NodeId before = b.GuardedView(both, {e, n}, rows(c, e, -1), -7);
  b.Write(b.Apply(Op::kAdd, {here, before}, {e, n}), {n, e});
  return b.program();
}

// Every operation from 32 on.
Program OwnFunctions() {
  ProgramBuilder b;
  const DimId m = b.Dim("m", 6);
  const DimId n = b.Dim("n", 19);
  const NodeId x = b.Read({m, n});
  const NodeId y = b.Read({n});
  const NodeId scale = b.Constant(0.375, {});
  const NodeId part = b.Apply(Op::kMultiply, {x, scale}, {m, n});
  const auto of = [&](Op op, std::vector<NodeId> inputs) {
    return b.Apply(op, std::move(inputs), {m, n});
  };
  const NodeId tanh = of(Op::kTanh, {part});
  const NodeId erf = of(Op::kErf, {part});
  const NodeId wave = of(Op::kMultiply, {of(Op::kSin, {part}), of(Op::kCos, {x})});
  const NodeId base = of(Op::kAdd, {of(Op::kAbs, {part}), scale});
  const NodeId power = of(Op::kPower, {base, x});
  const NodeId greater = of(Op::kGreater, {x, y});
  const NodeId sum = of(Op::kAdd, {tanh, erf, wave, power});
  b.Write(of(Op::kSelect, {greater, sum, part}), {n, m});
  const NodeId steps = of(Op::kAdd, {of(Op::kFloor, {part}), of(Op::kCeil, {part}),
                                     of(Op::kRound, {part}), of(Op::kSign, {x}), greater,
                                     of(Op::kGreaterEqual, {x, y}), of(Op::kEqual, {x, y})});
  b.Write(b.Apply(Op::kAdd, {steps}, {m}), {m});
  return b.program();
}

std::vector<DimId> IterationDims(const Program& program, NodeId node) {
  std::vector<DimId> dims = program.nodes[node].dims;
  for (DimId dim : program.ReducedDims(node)) dims.push_back(dim);
  return dims;
}

bool MayGoWithoutLoops(Op op) { return op == Op::kRead || op == Op::kView || op == Op::kConstant; }

LoopTree MustBuild(const Program& program, Schedule schedule) {
  auto tree = LoopTree::Build(std::make_shared<Program>(program), std::move(schedule));
  LF_CHECK(tree.has_value(), "{}", tree.error().message);
  return *std::move(tree);
}

Annotation RandomAnnotation(SplitMix64& random) {
  switch (random.Below(12)) {
    case 0: return Annotation::kUnroll;
    case 1: return Annotation::kVectorize;
    case 2: return Annotation::kThread;
    default: return Annotation::kNone;
  }
}

// Splits `dims` at random and puts the loops into a random order.
std::vector<LoopSpec> RandomLoops(const Program& program, std::vector<DimId> dims,
                                  SplitMix64& random) {
  std::vector<LoopSpec> loops;
  std::vector<std::int64_t> left;  // elements to cover, by dim
  for (const looptree::Dim& dim : program.dims) left.push_back(dim.size);
  for (std::size_t extra = random.Below(4); extra > 0 && !dims.empty(); --extra) {
    dims.push_back(dims[random.Below(dims.size())]);
  }
  for (std::size_t i = dims.size(); i > 1; --i) std::swap(dims[i - 1], dims[random.Below(i)]);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const DimId dim = dims[i];
    const bool innermost =
        std::find(dims.begin() + static_cast<std::ptrdiff_t>(i) + 1, dims.end(), dim) == dims.end();
    const auto choices = static_cast<std::uint64_t>(std::min<std::int64_t>(left[dim], 20));
    const auto inner = innermost ? 1 : 1 + static_cast<std::int64_t>(random.Below(choices));
    loops.push_back({.dim = dim,
                     .size = left[dim] / inner,
                     .tail = left[dim] % inner,
                     .annotation = RandomAnnotation(random)});
    left[dim] = inner;
  }
  return loops;
}

}  // namespace

std::vector<ZooProgram> ProgramZoo() {
  return {{"MatrixProduct", MatrixProduct(33, 21, 34)},
          {"WideMatrixProduct", MatrixProduct(4, 70, 9)},
          {"Chain", Chain()},
          {"Pointwise", Pointwise()},
          {"Transpose", Transpose()},
          {"Reductions", Reductions()},
          {"SumOfPositiveProducts", SumOfPositiveProducts()},
          {"Convolution1d", Convolution1d()},
          {"Convolution2d", Convolution2d()},
          {"ViewOfIntermediate", ViewOfIntermediate()},
          {"Unrelated", Unrelated()},
          {"Rounding", Rounding()},
          {"Ones", Ones()},
          {"PaddedConvolution", PaddedConvolution()},
          {"SpreadConvolution", SpreadConvolution()},
          {"Concatenation", Concatenation()},
          {"OwnFunctions", OwnFunctions()}};
}

LoopTree PlainTree(const Program& program) {
  Schedule schedule(program.nodes.size());
  for (NodeId node = 0; node < program.nodes.size(); ++node) {
    if (MayGoWithoutLoops(program.nodes[node].op)) continue;
    for (DimId dim : IterationDims(program, node)) {
      schedule[node].loops.push_back({.dim = dim, .size = program.dims[dim].size});
    }
  }
  return MustBuild(program, std::move(schedule));
}

LoopTree ProductsTree(const std::vector<std::int64_t>& rows, std::int64_t depth,
                      std::int64_t columns) {
  ProgramBuilder b;
  Schedule schedule;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string index = std::to_string(i);
    const DimId m = b.Dim("m" + index, rows[i]);
    const DimId k = b.Dim("k" + index, depth);
    const DimId n = b.Dim("n" + index, columns);
    const NodeId a = b.Read({m, k});
    const NodeId w = b.Read({k, n});
    const NodeId product = b.Apply(Op::kMultiply, {a, w}, {m, k, n});
    const NodeId sum = b.Apply(Op::kAdd, {product}, {m, n});
    const NodeId result = b.Write(sum, {m, n});
    schedule.resize(b.program().nodes.size());
    const double priority = static_cast<double>(rows.size() - i);
    const LoopSpec by_m{.dim = m, .size = rows[i]};
    const LoopSpec by_k{.dim = k, .size = depth};
    const LoopSpec by_n{.dim = n, .size = columns};
    schedule[product] = {.loops = {by_m, by_k, by_n}, .priority = priority};
    schedule[sum] = schedule[product];
    schedule[result] = {.loops = {by_m, by_n}, .priority = priority};
  }
  return MustBuild(b.program(), std::move(schedule));
}

LoopTree RepeatedSumTree() {
  ProgramBuilder b;
  const LoopSpec d{.dim = b.Dim("d", 4), .size = 4};
  const LoopSpec a{.dim = b.Dim("a", 6), .size = 6};
  const LoopSpec k{.dim = b.Dim("k", 5), .size = 5};
  const NodeId sum = b.Apply(Op::kAdd, {b.Read({a.dim, k.dim})}, {a.dim});
  const NodeId beside = b.Write(b.Read({d.dim}), {d.dim});
  const NodeId result = b.Write(sum, {d.dim, a.dim});
  Schedule schedule(b.program().nodes.size());
  schedule[sum].loops = {a, k};
  schedule[beside].loops = {d};
  schedule[result].loops = {d, a};
  return MustBuild(b.program(), std::move(schedule));
}

LoopTree RandomTree(const Program& program, SplitMix64& random) {
  // A draw can break a rule of the language (a view that shares a loop with its input); it is
  // repeated then.
  while (true) {
    Schedule schedule(program.nodes.size());
    const bool schedule_all = random.Below(3) == 0;
    const std::vector<LoopSpec>* before = nullptr;
    for (NodeId node = 0; node < program.nodes.size(); ++node) {
      if (MayGoWithoutLoops(program.nodes[node].op) && !schedule_all) continue;
      std::vector<DimId> dims = IterationDims(program, node);
      std::vector<LoopSpec>& loops = schedule[node].loops;
      if (before != nullptr && random.Below(3) != 0) {
        // The previous loops that run over this node's dims, so that nests merge.
        loops = *before;
        std::erase_if(loops, [&](const LoopSpec& loop) {
          return std::ranges::find(dims, loop.dim) == dims.end();
        });
        std::erase_if(dims, [&](DimId dim) {
          return std::ranges::find(loops, dim, &LoopSpec::dim) != loops.end();
        });
      }
      const std::vector<LoopSpec> rest = RandomLoops(program, dims, random);
      loops.insert(loops.end(), rest.begin(), rest.end());
      if (random.Below(8) == 0 && !loops.empty()) {
        loops[random.Below(loops.size())].reusable = false;
      }
      before = &loops;
    }
    auto tree = LoopTree::Build(std::make_shared<Program>(program), std::move(schedule));
    if (tree.has_value()) return *std::move(tree);
  }
}

}  // namespace loopfleet::worker
