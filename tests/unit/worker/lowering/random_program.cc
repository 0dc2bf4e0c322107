#include "tests/unit/worker/lowering/random_program.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/unit/worker/lowering/program_zoo.h"

namespace loopfleet::worker {
namespace {

using looptree::DimId;
using looptree::NodeId;
using looptree::Op;
using looptree::Program;

class Author {
 public:
  explicit Author(SplitMix64& random) : random_(random) {}

  // A size from 1 to `most`: sometimes 1, sometimes a multiple of 8.
  std::int64_t Size(std::int64_t most) {
    const auto bound = static_cast<std::uint64_t>(most);
    switch (random_.Below(10)) {
      case 0: return 1;
      case 1: return std::max<std::int64_t>(1, most / 8 * 8);
      default: return 1 + static_cast<std::int64_t>(random_.Below(bound));
    }
  }
  template <std::size_t N>
  Op OneOf(const Op (&ops)[N]) {
    return ops[random_.Below(N)];
  }

  Program MatrixProduct(bool transposed) {
    const DimId m = b_.Dim("m", Size(24));
    const DimId k = b_.Dim("k", Size(18));
    const DimId n = b_.Dim("n", Size(40));
    const NodeId x = b_.Read(transposed ? std::vector{k, m} : std::vector{m, k});
    const NodeId y = b_.Read({k, n});
    NodeId product = b_.Apply(Op::kMultiply, {x, y}, {m, k, n});
    if (random_.Below(3) == 0) {
      product = b_.Apply(Op::kMax, {product, b_.Read({})}, {m, k, n});
    }
    const Op reduce = OneOf({Op::kAdd, Op::kAdd, Op::kAdd, Op::kMin, Op::kMax});
    b_.Write(b_.Apply(reduce, {product}, {m, n}), {m, n});
    return b_.program();
  }

  Program Chain() {
    const DimId m = b_.Dim("m", Size(9));
    const DimId k = b_.Dim("k", Size(14));
    const DimId n = b_.Dim("n", Size(9));
    const DimId p = b_.Dim("p", Size(20));
    const NodeId x = b_.Read({m, k});
    const NodeId y = b_.Read({k, n});
    const NodeId z = b_.Read({n, p});
    const NodeId first = b_.Apply(Op::kAdd, {b_.Apply(Op::kMultiply, {x, y}, {m, k, n})}, {m, n});
    const NodeId second = b_.Apply(Op::kMultiply, {first, z}, {m, n, p});
    b_.Write(b_.Apply(Op::kAdd, {second}, {m, p}), {m, p});
    if (random_.Below(2) == 0) b_.Write(first, {n, m});
    return b_.program();
  }

  // A random expression over up to three dims.
  Program Pointwise() {
    std::vector<DimId> dims = {b_.Dim("m", Size(13)), b_.Dim("n", Size(45))};
    if (random_.Below(3) == 0) dims.push_back(b_.Dim("p", Size(5)));
    std::vector<NodeId> values = {b_.Read(dims), b_.Read(dims), b_.Read({dims[1]})};
    const auto any = [&] { return values[random_.Below(values.size())]; };
    for (std::uint64_t more = 1 + random_.Below(6); more > 0; --more) {
      if (random_.Below(3) == 0) {
        const Op op = OneOf({Op::kNegate, Op::kAbs, Op::kCopy});
        values.push_back(b_.Apply(op, {any()}, dims));
      } else {
        const Op op = OneOf({Op::kAdd, Op::kSubtract, Op::kMultiply, Op::kMin, Op::kMax});
        values.push_back(b_.Apply(op, {any(), any()}, dims));
      }
    }
    b_.Write(values.back(), dims);
    std::swap(dims[0], dims[1]);
    if (random_.Below(3) == 0) b_.Write(values.back(), dims);
    return b_.program();
  }

  Program Reductions() {
    const DimId m = b_.Dim("m", Size(12));
    const DimId k = b_.Dim("k", Size(50));
    const NodeId x = b_.Read({m, k});
    const NodeId s = b_.Read({m});
    const NodeId low = b_.Apply(OneOf({Op::kMin, Op::kAdd}), {x}, {m});
    const NodeId high = b_.Apply(Op::kMax, {x}, {m});
    b_.Write(b_.Apply(Op::kAdd, {low, high, s}, {m}), {m});
    b_.Write(b_.Apply(OneOf({Op::kAdd, Op::kMax}), {x}, {}), {});
    if (random_.Below(2) == 0) b_.Write(b_.Apply(Op::kAdd, {x}, {k}), {k});
    if (random_.Below(2) == 0) b_.Write(b_.Apply(Op::kMultiply, {s}, {}), {});
    return b_.program();
  }

  Program Transpose() {
    const DimId m = b_.Dim("m", Size(21));
    const DimId n = b_.Dim("n", Size(19));
    const DimId p = b_.Dim("p", Size(4));
    const NodeId x = b_.Read({m, n, p});
    b_.Write(b_.Apply(OneOf({Op::kCopy, Op::kNegate}), {x}, {p, n, m}), {n, p, m});
    return b_.program();
  }

  Program Convolution1d() {
    const std::int64_t taps = Size(5);
    const std::int64_t outputs = Size(40);
    const auto stride = 1 + static_cast<std::int64_t>(random_.Below(3));
    const auto spread = 1 + static_cast<std::int64_t>(random_.Below(2));
    const DimId i = b_.Dim("i", (outputs - 1) * stride + (taps - 1) * spread + 1);
    const DimId k = b_.Dim("k", taps);
    const DimId o = b_.Dim("o", outputs);
    const NodeId x = b_.Read({i});
    const NodeId window =
        b_.View(x, {k, o}, {{.input_dim = i, .terms = {{o, stride}, {k, spread}}}});
    const NodeId w = b_.Read({k});
    b_.Write(b_.Apply(Op::kAdd, {b_.Apply(Op::kMultiply, {window, w}, {k, o})}, {o}), {o});
    return b_.program();
  }

  Program Convolution2d() {
    const std::int64_t height = Size(4);
    const std::int64_t width = Size(9);
    const std::int64_t rows = Size(3);
    const std::int64_t columns = Size(3);
    const DimId c = b_.Dim("c", Size(3));
    const DimId h = b_.Dim("h", height + rows - 1);
    const DimId w = b_.Dim("w", width + columns - 1);
    const DimId y = b_.Dim("y", height);
    const DimId x = b_.Dim("x", width);
    const DimId i = b_.Dim("i", rows);
    const DimId j = b_.Dim("j", columns);
    const DimId m = b_.Dim("m", Size(5));
    const NodeId image = b_.Read({c, h, w});
    const NodeId window = b_.View(image, {c, y, x, i, j},
                                  {{.input_dim = c, .terms = {{c, 1}}},
                                   {.input_dim = h, .terms = {{y, 1}, {i, 1}}},
                                   {.input_dim = w, .terms = {{x, 1}, {j, 1}}}});
    const NodeId filter = b_.Read({m, c, i, j});
    const NodeId product = b_.Apply(Op::kMultiply, {window, filter}, {c, y, x, i, j, m});
    b_.Write(b_.Apply(Op::kAdd, {product}, {m, y, x}), {m, y, x});
    return b_.program();
  }

  // A view of an intermediate, reversed, then a view of that view.
  Program Views() {
    const std::int64_t taken = Size(8);
    const auto stride = 1 + static_cast<std::int64_t>(random_.Below(3));
    const std::int64_t size = (taken - 1) * stride + 3;
    const DimId i = b_.Dim("i", size);
    const DimId r = b_.Dim("r", size);
    const DimId e = b_.Dim("e", taken);
    const DimId c = b_.Dim("c", Size(6));
    const NodeId x = b_.Read({c, i});
    const NodeId twice = b_.Apply(Op::kAdd, {x, x}, {c, i});
    const NodeId reversed = b_.View(twice, {c, r},
                                    {{.input_dim = c, .terms = {{c, 1}}},
                                     {.input_dim = i, .terms = {{r, -1}}, .constant = size - 1}});
    const NodeId some = b_.View(reversed, {c, e},
                                {{.input_dim = c, .terms = {{c, 1}}},
                                 {.input_dim = r, .terms = {{e, stride}}, .constant = 2}});
    b_.Write(b_.Apply(Op::kNegate, {some}, {c, e}), {c, e});
    b_.Write(b_.Apply(Op::kMax, {reversed}, {c}), {c});
    if (random_.Below(2) == 0) b_.Write(b_.Apply(Op::kAbs, {twice}, {c, i}), {c, i});
    return b_.program();
  }

  // Two programs in one: leaves of one can lie inside loops of the other.
  Program Unrelated() {
    const DimId k = b_.Dim("k", Size(6));
    const DimId m = b_.Dim("m", Size(5));
    const DimId n = b_.Dim("n", Size(20));
    const NodeId x = b_.Read({k, m, n});
    const NodeId y = b_.Read({k, n});
    const NodeId z = b_.Read({n});
    b_.Write(b_.Apply(Op::kNegate, {x}, {k, m, n}), {k, m, n});
    b_.Write(b_.Apply(OneOf({Op::kAdd, Op::kMax}), {y}, {n}), {n});
    b_.Write(b_.Apply(Op::kAbs, {z}, {n}), {n});
    return b_.program();
  }

  Program Rounding() {
    const DimId m = b_.Dim("m", Size(7));
    const DimId n = b_.Dim("n", Size(22));
    const NodeId x = b_.Read({m, n});
    const NodeId size = b_.Apply(Op::kAbs, {x}, {m, n});
    const NodeId small = b_.Apply(Op::kExp, {b_.Apply(Op::kNegate, {size}, {m, n})}, {m, n});
    const NodeId positive = b_.Apply(Op::kAdd, {size, small}, {m, n});  // >= 1
    const NodeId root = b_.Apply(Op::kSqrt, {positive}, {m, n});
    const NodeId logarithm = b_.Apply(Op::kLog, {positive}, {m, n});
    const NodeId exponential = b_.Apply(Op::kExp, {b_.Apply(Op::kNegate, {root}, {m, n})}, {m, n});
    const NodeId quotient = b_.Apply(Op::kDivide, {logarithm, root}, {m, n});
    const NodeId inverse = b_.Apply(Op::kReciprocal, {positive}, {m, n});
    const NodeId sum = b_.Apply(Op::kAdd, {quotient, inverse, exponential}, {m, n});
    b_.Write(b_.Apply(Op::kAdd, {sum}, {m}), {m});
    if (random_.Below(2) == 0) b_.Write(sum, {n, m});
    return b_.program();
  }

  // A convolution or pooling with a border, by one view or by two.
  Program Padded() {
    const std::int64_t taps = Size(4);
    const auto stride = 1 + static_cast<std::int64_t>(random_.Below(2));
    const auto before = static_cast<std::int64_t>(random_.Below(5)) - 1;
    const DimId c = b_.Dim("c", Size(4));
    const DimId i = b_.Dim("i", Size(30));
    const DimId k = b_.Dim("k", taps);
    const DimId o = b_.Dim("o", Size(30));
    const NodeId x = b_.Read({c, i});
    const double outside = static_cast<double>(random_.Below(4)) - 2;
    const looptree::ViewIndex channel{.input_dim = c, .terms = {{c, 1}}};
    NodeId window = 0;
    if (random_.Below(2) == 0) {
      window = b_.GuardedView(
          x, {c, o, k},
          {channel, {.input_dim = i, .terms = {{o, stride}, {k, 1}}, .constant = -before}},
          outside);
    } else {
      const std::int64_t reach = (b_.program().dims[o].size - 1) * stride + taps;
      const DimId p = b_.Dim("p", reach);
      const NodeId whole = random_.Below(2) == 0 ? x : b_.Apply(Op::kNegate, {x}, {c, i});
      const NodeId padded = b_.GuardedView(
          whole, {c, p}, {channel, {.input_dim = i, .terms = {{p, 1}}, .constant = -before}},
          outside);
      window =
          b_.View(padded, {c, o, k}, {channel, {.input_dim = p, .terms = {{o, stride}, {k, 1}}}});
    }
    if (random_.Below(3) == 0) {
      b_.Write(b_.Apply(Op::kMax, {window}, {c, o}), {c, o});
      return b_.program();
    }
    const NodeId product = b_.Apply(Op::kMultiply, {window, b_.Read({c, k})}, {c, o, k});
    const bool channels = random_.Below(2) == 0;
    const std::vector<DimId> kept = channels ? std::vector{o} : std::vector{c, o};
    b_.Write(b_.Apply(Op::kAdd, {product}, kept), kept);
    return b_.program();
  }

  // Elements spread apart, then every so many of these, repeated along another dim.
  Program Spread() {
    const auto divisor = 1 + static_cast<std::int64_t>(random_.Below(3));
    const auto stride = 1 + static_cast<std::int64_t>(random_.Below(3));
    const std::int64_t taken = Size(20);
    const DimId i = b_.Dim("i", Size(20));
    const DimId u = b_.Dim("u", (taken - 1) * stride + 2);
    const DimId e = b_.Dim("e", taken);
    const DimId r = b_.Dim("r", Size(9));
    const NodeId x = b_.Read({i});
    const NodeId source = random_.Below(2) == 0 ? x : b_.Apply(Op::kAbs, {x}, {i});
    const auto shift = static_cast<std::int64_t>(random_.Below(7)) - 3;
    const NodeId spread = b_.GuardedView(
        source, {u}, {{.input_dim = i, .terms = {{u, 1}}, .constant = shift, .divisor = divisor}},
        -1);
    const NodeId some = b_.GuardedView(
        spread, {e, r}, {{.input_dim = u, .terms = {{e, stride}}, .constant = 1}}, 2);
    const NodeId scaled = b_.Apply(Op::kMultiply, {some, b_.Read({r})}, {e, r});
    if (random_.Below(2) == 0) b_.Write(scaled, {r, e});
    b_.Write(b_.Apply(OneOf({Op::kAdd, Op::kMin}), {scaled}, {r}), {r});
    return b_.program();
  }

  // Two results one after the other along a dim; the second may be a constant.
  Program Concatenation() {
    const DimId a = b_.Dim("a", Size(9));
    const DimId d = b_.Dim("d", Size(9));
    const std::int64_t first_rows = b_.program().dims[a].size;
    const DimId c = b_.Dim("c", first_rows + b_.program().dims[d].size);
    const DimId n = b_.Dim("n", Size(20));
    const auto rows = [&](DimId of, std::int64_t begin) -> std::vector<looptree::ViewIndex> {
      return {{.input_dim = of, .terms = {{c, 1}}, .constant = -begin},
              {.input_dim = n, .terms = {{n, 1}}}};
    };
    const bool constant = random_.Below(2) == 0;
    const bool columns = random_.Below(2) == 0;
    const std::vector<DimId> shape = columns ? std::vector{c, n} : std::vector{n, c};
    const NodeId x = b_.Read({a, n});
    const NodeId y = constant ? b_.Constant(3, {d, n}) : b_.Read({d, n});
    const NodeId first = b_.GuardedView(x, shape, rows(a, 0), 0);
    const NodeId second = b_.GuardedView(y, shape, rows(d, first_rows), 0);
    const NodeId both = b_.Apply(Op::kAdd, {first, second}, shape);
    b_.Write(both, {c, n});
    if (random_.Below(2) == 0) b_.Write(b_.Apply(Op::kAdd, {both}, {c}), {c});
    return b_.program();
  }

  // Comparisons and steps, which are exact.
  Program Choices() {
    const DimId m = b_.Dim("m", Size(9));
    const DimId n = b_.Dim("n", Size(40));
    const std::vector<DimId> dims = {m, n};
    const NodeId half = b_.Constant(0.5, {});
    std::vector<NodeId> values = {b_.Read(dims), b_.Read({n}), b_.Read({m}), b_.Constant(1, {})};
    const auto any = [&] { return values[random_.Below(values.size())]; };
    for (std::uint64_t more = 2 + random_.Below(5); more > 0; --more) {
      switch (random_.Below(4)) {
        case 0: values.push_back(b_.Apply(Op::kSelect, {any(), any(), any()}, dims)); break;
        case 1: {
          const Op op = OneOf({Op::kFloor, Op::kCeil, Op::kRound, Op::kSign});
          values.push_back(b_.Apply(op, {b_.Apply(Op::kSelect, {any(), half, any()}, dims)}, dims));
          break;
        }
        default: {
          const Op op = OneOf({Op::kGreater, Op::kGreaterEqual, Op::kEqual, Op::kSubtract});
          values.push_back(b_.Apply(op, {any(), any()}, dims));
        }
      }
    }
    b_.Write(values.back(), dims);
    b_.Write(b_.Apply(OneOf({Op::kAdd, Op::kMax}), {values.back()}, {m}), {m});
    return b_.program();
  }

  // A result at one index of a dim that it lacks: a guard over a dim of its reader alone, which may
  // run in the same body, after an operation with that dim.
  Program Placed() {
    const DimId i = b_.Dim("i", Size(20));
    const DimId r = b_.Dim("r", Size(9));
    const DimId one = b_.Dim("one", 1);
    const NodeId x = b_.Read({i, r});
    const NodeId y = b_.Read({i});
    const auto at = static_cast<std::int64_t>(random_.Below(5));
    const NodeId other = b_.Apply(Op::kNegate, {x}, {i, r});
    const NodeId value = b_.Apply(OneOf({Op::kAbs, Op::kNegate}), {y}, {i});
    const NodeId unit = b_.GuardedView(value, {i, one}, {{.input_dim = i, .terms = {{i, 1}}}}, 0);
    const NodeId placed = b_.GuardedView(unit, {i, r},
                                         {{.input_dim = i, .terms = {{i, 1}}},
                                          {.input_dim = one, .terms = {{r, 1}}, .constant = -at}},
                                         -2);
    const Op op = OneOf({Op::kMultiply, Op::kAdd});
    const NodeId both = b_.Apply(op, {placed, other}, {i, r});
    switch (random_.Below(3)) {
      case 0: b_.Write(both, {i, r}); break;
      case 1: b_.Write(b_.Apply(Op::kAdd, {both}, {r}), {r}); break;
      default: b_.Write(b_.Apply(Op::kAdd, {placed}, {i}), {i}); b_.Write(both, {r, i});
    }
    return b_.program();
  }

  Program Waves() {
    const DimId m = b_.Dim("m", Size(7));
    const DimId n = b_.Dim("n", Size(22));
    const std::vector<DimId> dims = {m, n};
    const NodeId x = b_.Read(dims);
    const NodeId part = b_.Apply(Op::kMultiply, {x, b_.Constant(0.3, {})}, dims);
    const Op op = OneOf({Op::kTanh, Op::kErf, Op::kSin, Op::kCos});
    const NodeId one = b_.Apply(op, {part}, dims);
    const NodeId other = b_.Apply(OneOf({Op::kTanh, Op::kErf, Op::kSin, Op::kCos}), {x}, dims);
    const NodeId base =
        b_.Apply(Op::kAdd, {b_.Apply(Op::kAbs, {one}, dims), b_.Constant(0.5, {})}, dims);
    const NodeId power = b_.Apply(Op::kPower, {base, part}, dims);
    const NodeId sum = b_.Apply(Op::kAdd, {power, other}, dims);
    b_.Write(b_.Apply(Op::kAdd, {sum}, {m}), {m});
    if (random_.Below(2) == 0) b_.Write(sum, {n, m});
    return b_.program();
  }

 private:
  SplitMix64& random_;
  ProgramBuilder b_;
};

// A reduction of some operation's result that nothing reads.
void AddUnread(Program& program, SplitMix64& random) {
  const looptree::Node& input = program.nodes[random.Below(program.nodes.size())];
  if (input.op == Op::kWrite || input.dims.empty()) return;
  std::vector<DimId> dims = input.dims;
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(random.Below(dims.size())));
  const auto id = static_cast<NodeId>(&input - program.nodes.data());
  const Op op = std::vector{Op::kAdd, Op::kMin, Op::kMax}[random.Below(3)];
  program.nodes.push_back({.op = op, .inputs = {id}, .dims = std::move(dims)});
}

Program OfKind(std::uint64_t kind, SplitMix64& random) {
  Author author(random);
  switch (kind % kProgramKinds) {
    case 0: return author.MatrixProduct(false);
    case 1: return author.MatrixProduct(true);
    case 2: return author.Chain();
    case 3: return author.Pointwise();
    case 4: return author.Reductions();
    case 5: return author.Transpose();
    case 6: return author.Convolution1d();
    case 7: return author.Convolution2d();
    case 8: return author.Views();
    case 9: return author.Unrelated();
    case 10: return author.Rounding();
    case 11: return author.Padded();
    case 12: return author.Spread();
    case 13: return author.Concatenation();
    case 14: return author.Choices();
    case 15: return author.Waves();
    default: return author.Placed();
  }
}

}  // namespace

Program RandomProgram(std::uint64_t kind, SplitMix64& random) {
  Program program = OfKind(kind, random);
  if (random.Below(6) == 0) AddUnread(program, random);
  return program;
}

}  // namespace loopfleet::worker
