// Programs other than one matrix product or convolution, by name and sizes, to try schedules on.
//
// The positive product, which the article about loop_tool's interactive optimisation tunes with
// M = 33 and N = 48, is max(p, 0) of each product p. In `positive_product`, made before IR text
// could hold constants, 0 is p - p, which is exact for every finite p and costs one more operation;
// `positive_product_c` has the constant.

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>

#include "common/base/result.h"
#include "common/base/suggestion.h"
#include "common/looptree/datasets/dataset_rules.h"
#include "common/looptree/tree/program_builder.h"

namespace loopfleet::looptree {
namespace {

using Sizes = std::span<const std::int64_t>;

// out[m,n] = sum over k of max(x[m,k] y[k,n], 0)
void PositiveProduct(Sizes sizes, ProgramBuilder& b) {
  const DimId m = b.Dim("m", sizes[0]), k = b.Dim("k", sizes[2]), n = b.Dim("n", sizes[1]);
  const NodeId x = b.Read({m, k}), y = b.Read({k, n});
  const NodeId product = b.Apply(Op::kMultiply, {x, y}, {m, k, n});
  const NodeId zero = b.Apply(Op::kSubtract, {product, product}, {m, k, n});
  const NodeId positive = b.Apply(Op::kMax, {product, zero}, {m, k, n});
  b.Write(b.Apply(Op::kAdd, {positive}, {m, n}));
}

// The same, with 0 as a constant.
void PositiveProductOfConstant(Sizes sizes, ProgramBuilder& b) {
  const DimId m = b.Dim("m", sizes[0]), k = b.Dim("k", sizes[2]), n = b.Dim("n", sizes[1]);
  const NodeId x = b.Read({m, k}), y = b.Read({k, n});
  const NodeId product = b.Apply(Op::kMultiply, {x, y}, {m, k, n});
  const NodeId positive = b.Apply(Op::kMax, {product, b.Constant(0)}, {m, k, n});
  b.Write(b.Apply(Op::kAdd, {positive}, {m, n}));
}

// out[m,n] = max(sum over k of x[m,k] y[k,n] + bias[n], floor[m,n])
void BiasedProduct(Sizes sizes, ProgramBuilder& b) {
  const DimId m = b.Dim("m", sizes[0]), k = b.Dim("k", sizes[2]), n = b.Dim("n", sizes[1]);
  const NodeId x = b.Read({m, k}), y = b.Read({k, n}), bias = b.Read({n}), floor = b.Read({m, n});
  const NodeId product = b.Apply(Op::kMultiply, {x, y}, {m, k, n});
  const NodeId sum = b.Apply(Op::kAdd, {product}, {m, n});
  const NodeId biased = b.Apply(Op::kAdd, {sum, bias}, {m, n});
  b.Write(b.Apply(Op::kMax, {biased, floor}, {m, n}));
}

// out[m,p] = sum over n of (sum over k of x[m,k] y[k,n]) z[n,p]
void TwoProducts(Sizes sizes, ProgramBuilder& b) {
  const DimId m = b.Dim("m", sizes[0]), k = b.Dim("k", sizes[2]);
  const DimId n = b.Dim("n", sizes[1]), p = b.Dim("p", sizes[3]);
  const NodeId x = b.Read({m, k}), y = b.Read({k, n}), z = b.Read({n, p});
  const NodeId first = b.Apply(Op::kMultiply, {x, y}, {m, k, n});
  const NodeId between = b.Apply(Op::kAdd, {first}, {m, n});
  const NodeId second = b.Apply(Op::kMultiply, {between, z}, {m, n, p});
  b.Write(b.Apply(Op::kAdd, {second}, {m, p}));
}

// out = exp(x y) + x
void Chain(Sizes sizes, ProgramBuilder& b) {
  const DimId m = b.Dim("m", sizes[0]), n = b.Dim("n", sizes[1]);
  const NodeId x = b.Read({m, n}), y = b.Read({m, n});
  const NodeId product = b.Apply(Op::kMultiply, {x, y}, {m, n});
  const NodeId power = b.Apply(Op::kExp, {product}, {m, n});
  b.Write(b.Apply(Op::kAdd, {power, x}, {m, n}));
}

template <Op kOp>
void Reduce(Sizes sizes, ProgramBuilder& b) {
  const DimId m = b.Dim("m", sizes[0]), k = b.Dim("k", sizes[1]);
  b.Write(b.Apply(kOp, {b.Read({m, k})}, {m}));
}

// out[m,n] = x[m,n] - max over n of x[m,n]: another nest reads the maximum
void Shift(Sizes sizes, ProgramBuilder& b) {
  const DimId m = b.Dim("m", sizes[0]), n = b.Dim("n", sizes[1]);
  const NodeId x = b.Read({m, n});
  const NodeId greatest = b.Apply(Op::kMax, {x}, {m});
  b.Write(b.Apply(Op::kSubtract, {x, greatest}, {m, n}));
}

// out[o] = sum over k of x[o+k] w[k]
void Convolve(Sizes sizes, ProgramBuilder& b) {
  const DimId i = b.Dim("i", sizes[0]), k = b.Dim("k", sizes[1]);
  const DimId o = b.Dim("o", sizes[0] - sizes[1] + 1);
  const NodeId x = b.Read({i});
  const NodeId windows = b.View(x, {k, o}, {{i, {{o, 1}, {k, 1}}, 0}});
  const NodeId w = b.Read({k});
  const NodeId product = b.Apply(Op::kMultiply, {windows, w}, {k, o});
  b.Write(b.Apply(Op::kAdd, {product}, {o}));
}

struct Family {
  std::string_view name;
  std::string_view sizes;  // their form in a name
  std::size_t count;
  void (*write)(Sizes sizes, ProgramBuilder& builder);
};
constexpr std::array kFamilies = {
    Family{"positive_product", "<M>_<N>_<K>", 3, PositiveProduct},
    Family{"positive_product_c", "<M>_<N>_<K>", 3, PositiveProductOfConstant},
    Family{"mmbias", "<M>_<N>_<K>", 3, BiasedProduct},
    Family{"twomm", "<M>_<N>_<K>_<P>", 4, TwoProducts},
    Family{"chain", "<M>_<N>", 2, Chain},
    Family{"reduce_add", "<M>_<K>", 2, Reduce<Op::kAdd>},
    Family{"reduce_max", "<M>_<K>", 2, Reduce<Op::kMax>},
    Family{"shift", "<M>_<N>", 2, Shift},
    Family{"conv1d", "<N>_<K>", 2, Convolve},
};

// The family with the longest name that the member starts with: "conv1d" for "conv1d64_3".
const Family* FamilyOf(std::string_view member) {
  const Family* found = nullptr;
  for (const Family& family : kFamilies) {
    if (!member.starts_with(family.name)) continue;
    if (found == nullptr || family.name.size() > found->name.size()) found = &family;
  }
  return found;
}

Checked<Benchmark> OpenProgram(std::string_view member, const Limits& limits) {
  const Family* family = FamilyOf(member);
  if (family == nullptr) {
    std::vector<std::string_view> names;
    std::string all;
    for (const Family& known : kFamilies) {
      names.push_back(known.name);
      all += fmt::format("{}{}{}", all.empty() ? "" : ", ", known.name, known.sizes);
    }
    const auto letters = member.substr(0, member.find_first_of("0123456789"));
    return RejectMember(member, fmt::format("it must be one of {}", all),
                        Nearest(letters, names).value_or(""));
  }
  const auto sizes = ParseSizes(member.substr(family->name.size()), family->count);
  const bool fits = family->write != Convolve || !sizes || (*sizes)[1] <= (*sizes)[0];
  if (!sizes || !fits) {
    return RejectMember(
        member,
        fmt::format("it must be {}{} with sizes of at least 1{}{}", family->name, family->sizes,
                    family->write == Convolve ? " and K <= N" : "", WrongNumber(member)));
  }
  ProgramBuilder builder;
  family->write(*sizes, builder);
  LF_TRY(LoopTree start, std::move(builder).Build(limits));
  return Benchmark{Dialect::kAgent, Target::kCpu, std::move(start)};
}

constexpr std::array kRules = {
    DatasetRules{{"benchmark://program-v0/",
                  "sums of positive products, chains, bias, two products, reductions: by name", 0,
                  "benchmark://program-v0/positive_product33_48_64"},
                 nullptr,
                 OpenProgram},
};

}  // namespace

std::span<const DatasetRules> ProgramDatasets() { return kRules; }

}  // namespace loopfleet::looptree
