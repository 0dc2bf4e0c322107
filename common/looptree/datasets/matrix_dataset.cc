// Matrix products C[m,n] = sum_k A[m,k] B[k,n]. Datasets: any size, the sizes 64 to 256 in steps of
// 16, and one size in every order of its loops (spec B.11).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/result.h"
#include "common/looptree/datasets/dataset_rules.h"
#include "common/looptree/datasets/loop_permutation.h"
#include "common/looptree/tree/program_builder.h"

namespace loopfleet::looptree {
namespace {

constexpr DimId kM = 0, kK = 1, kN = 2;

struct MatrixSizes {
  std::int64_t m, n, k;
};

Checked<Benchmark> OpenMatrixProduct(const MatrixSizes& sizes,
                                     std::span<const ProgramBuilder::Loop> order,
                                     const Limits& limits) {
  ProgramBuilder builder;
  builder.Dim("m", sizes.m);
  builder.Dim("k", sizes.k);
  builder.Dim("n", sizes.n);
  const NodeId a = builder.Read({kM, kK});
  const NodeId b = builder.Read({kK, kN});
  const NodeId product = builder.Apply(Op::kMultiply, {a, b}, {kM, kK, kN});
  builder.Write(builder.Apply(Op::kAdd, {product}, {kM, kN}));
  LF_TRY(LoopTree start, std::move(builder).Build(order, limits));
  return Benchmark{Dialect::kAgent, Target::kCpu, std::move(start)};
}

Checked<Benchmark> OpenPlain(const MatrixSizes& sizes, const Limits& limits) {
  const std::array<ProgramBuilder::Loop, 3> order = {{{kM, sizes.m}, {kK, sizes.k}, {kN, sizes.n}}};
  return OpenMatrixProduct(sizes, order, limits);
}

std::optional<MatrixSizes> ParseMatrixName(std::string_view member) {
  if (!member.starts_with("mm")) return std::nullopt;
  const auto sizes = ParseSizes(member.substr(2), 3);
  if (!sizes) return std::nullopt;
  return MatrixSizes{.m = (*sizes)[0], .n = (*sizes)[1], .k = (*sizes)[2]};
}

std::string MatrixName(const MatrixSizes& sizes) {
  return fmt::format("mm{}_{}_{}", sizes.m, sizes.n, sizes.k);
}

Checked<Benchmark> OpenAny(std::string_view member, const Limits& limits) {
  const auto sizes = ParseMatrixName(member);
  if (!sizes) {
    return RejectMember(member,
                        "it must be mm<M>_<N>_<K> with sizes of at least 1" + WrongNumber(member));
  }
  return OpenPlain(*sizes, limits);
}

struct SizeRange {
  std::int64_t first;
  std::int64_t step;
  std::int64_t count;
  constexpr std::int64_t last() const { return first + step * (count - 1); }
  constexpr bool Has(std::int64_t size) const { return size == Nearest(size); }
  constexpr std::int64_t Nearest(std::int64_t size) const {
    const std::int64_t inside = std::clamp(size, first, last());
    return first + (inside - first + step / 2) / step * step;
  }
};
constexpr SizeRange kRange{.first = 64, .step = 16, .count = 13};
constexpr auto kRangeCount = static_cast<std::uint64_t>(kRange.count);

std::string RangeMember(std::uint64_t index) {
  const auto size = [](std::uint64_t place) {
    return kRange.first + static_cast<std::int64_t>(place % kRangeCount) * kRange.step;
  };
  return MatrixName({.m = size(index / (kRangeCount * kRangeCount)),
                     .n = size(index / kRangeCount),
                     .k = size(index)});
}

Checked<Benchmark> OpenRange(std::string_view member, const Limits& limits) {
  const auto sizes = ParseMatrixName(member);
  if (sizes && kRange.Has(sizes->m) && kRange.Has(sizes->n) && kRange.Has(sizes->k)) {
    return OpenPlain(*sizes, limits);
  }
  const std::string nearest = sizes ? MatrixName({.m = kRange.Nearest(sizes->m),
                                                  .n = kRange.Nearest(sizes->n),
                                                  .k = kRange.Nearest(sizes->k)})
                                    : "";
  return RejectMember(
      member,
      fmt::format("it must be mm<M>_<N>_<K> with sizes {}, {}, ... {} (benchmark://mm-v0/"
                  " has matrix products of any size)",
                  kRange.first, kRange.first + kRange.step, kRange.last()),
      nearest);
}

// All sizes are 128: one loop of 128, or 8 x 16. Loops are listed by dimension, m before k before
// n, the outer piece first. Multiply and add have the named order, as in the original's files.
// There the write keeps its first order if the walk to that order never changed it; here the write
// always follows.
struct PermutationSet {
  std::string_view name;
  std::array<ProgramBuilder::Loop, 6> loops;
  std::size_t count;
};
constexpr std::int64_t kSide = 128;
constexpr PermutationSet kWhole{"mm128_128_128", {{{kM, 128}, {kK, 128}, {kN, 128}}}, 3};
constexpr PermutationSet kSplitM{"mm8_16_128_128", {{{kM, 8}, {kM, 16}, {kK, 128}, {kN, 128}}}, 4};
constexpr PermutationSet kSplitMK{
    "mm8_16_8_16_128", {{{kM, 8}, {kM, 16}, {kK, 8}, {kK, 16}, {kN, 128}}}, 5};
constexpr PermutationSet kSplitAll{
    "mm8_16_8_16_8_16", {{{kM, 8}, {kM, 16}, {kK, 8}, {kK, 16}, {kN, 8}, {kN, 16}}}, 6};

template <const PermutationSet& kSet>
std::string PermutationMember(std::uint64_t index) {
  return fmt::format("{}_{}", kSet.name, PermutationName(kSet.count, index));
}

template <const PermutationSet& kSet>
Checked<Benchmark> OpenPermutation(std::string_view member, const Limits& limits) {
  std::optional<std::vector<std::size_t>> order;
  if (member.starts_with(kSet.name) && member.substr(kSet.name.size()).starts_with('_')) {
    order = ParsePermutation(member.substr(kSet.name.size() + 1), kSet.count);
  }
  if (!order) {
    return RejectMember(
        member,
        fmt::format("it must be {}_<order> with each digit from 0 to {} once: the loops"
                    " from the outermost in",
                    kSet.name, kSet.count - 1),
        PermutationMember<kSet>(0));
  }
  std::vector<ProgramBuilder::Loop> loops;
  for (const std::size_t loop : *order) loops.push_back(kSet.loops[loop]);
  return OpenMatrixProduct({.m = kSide, .n = kSide, .k = kSide}, loops, limits);
}

template <const PermutationSet& kSet>
constexpr DatasetRules PermutationRules(std::string_view prefix, std::string_view description,
                                        std::string_view example) {
  return {{prefix, description, PermutationCount(kSet.count), example},
          PermutationMember<kSet>,
          OpenPermutation<kSet>};
}

constexpr std::array kRules = {
    DatasetRules{
        {"benchmark://mm64_256_16_range-v0/",
         "matrix products C[m,n] = sum_k A[m,k] B[k,n], each size 64, 80, ... 256",
         kRangeCount* kRangeCount* kRangeCount, "benchmark://mm64_256_16_range-v0/mm64_128_256"},
        RangeMember,
        OpenRange},
    DatasetRules{{"benchmark://mm-v0/", "matrix products of any size: mm<M>_<N>_<K>", 0,
                  "benchmark://mm-v0/mm64_64_64"},
                 nullptr,
                 OpenAny},
    PermutationRules<kWhole>("benchmark://mm128_128_128-v0/",
                             "matrix product of size 128, loops m, k, n in every order",
                             "benchmark://mm128_128_128-v0/mm128_128_128_021"),
    PermutationRules<kSplitM>("benchmark://mm8_16_128_128-v0/",
                              "the same with m as 8 x 16, in every order of the 4 loops",
                              "benchmark://mm8_16_128_128-v0/mm8_16_128_128_0132"),
    PermutationRules<kSplitMK>("benchmark://mm8_16_8_16_128-v0/",
                               "the same with m and k as 8 x 16, in every order of the 5 loops",
                               "benchmark://mm8_16_8_16_128-v0/mm8_16_8_16_128_02413"),
    PermutationRules<kSplitAll>("benchmark://mm8_16_8_16_8_16-v0/",
                                "the same with m, k and n as 8 x 16, in every order of the 6 loops",
                                "benchmark://mm8_16_8_16_8_16-v0/mm8_16_8_16_8_16_024135"),
};

}  // namespace

std::span<const DatasetRules> MatrixDatasets() { return kRules; }

}  // namespace loopfleet::looptree
