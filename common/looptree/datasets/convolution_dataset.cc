// Valid convolutions of stride 1, as a view of the image, a multiplication and a reduction.
// Datasets: any shape, LoopTune's training and test shapes, and one shape in every order of its
// loops.

#include <fmt/format.h>

#include <array>
#include <utility>

#include "common/base/result.h"
#include "common/base/suggestion.h"
#include "common/looptree/datasets/dataset_rules.h"
#include "common/looptree/datasets/loop_permutation.h"
#include "common/looptree/tree/program_builder.h"

namespace loopfleet::looptree {
namespace {

constexpr DimId kN = 0, kC = 1, kH = 2, kW = 3, kHo = 4, kWo = 5, kKh = 6, kKw = 7, kM = 8;

// conv<n>_<c>_<h>_<w>__<m>_<c>_<kh>_<kw>
struct Shape {
  std::int64_t n, c, h, w, m, kh, kw;
  constexpr std::int64_t ho() const { return h - kh + 1; }
  constexpr std::int64_t wo() const { return w - kw + 1; }
};

// n, c, ho, wo, kh, kw, m: the order in which loop_tool creates them.
using Loops = std::array<ProgramBuilder::Loop, 7>;
constexpr Loops LoopsOf(const Shape& shape) {
  return {{{kN, shape.n},
           {kC, shape.c},
           {kHo, shape.ho()},
           {kWo, shape.wo()},
           {kKh, shape.kh},
           {kKw, shape.kw},
           {kM, shape.m}}};
}

Checked<Benchmark> OpenShape(const Shape& shape, const Loops& order, const Limits& limits) {
  ProgramBuilder builder;
  builder.Dim("n", shape.n);
  builder.Dim("c", shape.c);
  builder.Dim("h", shape.h);
  builder.Dim("w", shape.w);
  builder.Dim("ho", shape.ho());
  builder.Dim("wo", shape.wo());
  builder.Dim("kh", shape.kh);
  builder.Dim("kw", shape.kw);
  builder.Dim("m", shape.m);
  const NodeId image = builder.Read({kN, kC, kH, kW});
  const NodeId windows = builder.View(image, {kN, kC, kHo, kWo, kKh, kKw},
                                      {{kN, {{kN, 1}}, 0},
                                       {kC, {{kC, 1}}, 0},
                                       {kH, {{kHo, 1}, {kKh, 1}}, 0},
                                       {kW, {{kWo, 1}, {kKw, 1}}, 0}});
  const NodeId weights = builder.Read({kM, kC, kKh, kKw});
  const NodeId product =
      builder.Apply(Op::kMultiply, {windows, weights}, {kN, kC, kHo, kWo, kKh, kKw, kM});
  builder.Write(builder.Apply(Op::kAdd, {product}, {kN, kM, kHo, kWo}));
  LF_TRY(LoopTree start, std::move(builder).Build(order, limits));
  return Benchmark{Dialect::kAgent, Target::kCpu, std::move(start)};
}

std::optional<Shape> ParseShape(std::string_view member) {
  const std::size_t middle = member.find("__");
  if (!member.starts_with("conv") || middle == std::string_view::npos) return std::nullopt;
  const auto image = ParseSizes(member.substr(4, middle - 4), 4);
  const auto kernel = ParseSizes(member.substr(middle + 2), 4);
  if (!image || !kernel || (*image)[1] != (*kernel)[1]) return std::nullopt;
  const Shape shape{.n = (*image)[0],
                    .c = (*image)[1],
                    .h = (*image)[2],
                    .w = (*image)[3],
                    .m = (*kernel)[0],
                    .kh = (*kernel)[2],
                    .kw = (*kernel)[3]};
  if (shape.kh > shape.h || shape.kw > shape.w) return std::nullopt;
  return shape;
}

std::string ShapeName(const Shape& shape) {
  return fmt::format("conv{}_{}_{}_{}__{}_{}_{}_{}", shape.n, shape.c, shape.h, shape.w, shape.m,
                     shape.c, shape.kh, shape.kw);
}

Checked<Benchmark> OpenAny(std::string_view member, const Limits& limits) {
  const auto shape = ParseShape(member);
  if (!shape) {
    return RejectMember(
        member,
        "it must be conv<N>_<C>_<H>_<W>__<M>_<C>_<KH>_<KW> with sizes of at least 1,"
        " the same C twice, KH <= H and KW <= W" +
            WrongNumber(member));
  }
  return OpenShape(*shape, LoopsOf(*shape), limits);
}

// LoopTune's 81 shapes: 1, 32 or 64 images with 32, 64 or 128 channels, 56, 112 or 256 wide and
// high, to 1, 32 or 64 channels by 3 x 3 kernels. The originals trained on the shapes that
// loop_nest compiled and tuned in time, and tested on the others. A rule by size gives exactly
// their 62 and 19 files: a shape is too big for training if its images have 2^28 elements or more,
// or 2^31 times output channels.
constexpr std::array<std::int64_t, 3> kImages = {1, 32, 64};
constexpr std::array<std::int64_t, 3> kChannels = {32, 64, 128};
constexpr std::array<std::int64_t, 3> kSides = {56, 112, 256};
constexpr std::array<std::int64_t, 3> kOutputs = {1, 32, 64};
constexpr std::int64_t kKernelSide = 3;
constexpr std::size_t kGrid = 81;

constexpr Shape GridShape(std::size_t index) {
  const std::int64_t side = kSides[index / 3 % 3];
  return {.n = kImages[index / 27],
          .c = kChannels[index / 9 % 3],
          .h = side,
          .w = side,
          .m = kOutputs[index % 3],
          .kh = kKernelSide,
          .kw = kKernelSide};
}

enum class Part : std::uint8_t { kTrain, kTest };

constexpr Part PartOf(const Shape& shape) {
  const std::int64_t elements = shape.n * shape.c * shape.h * shape.w;
  const bool big = elements >= std::int64_t{1} << 28 || elements * shape.m >= std::int64_t{1} << 31;
  return big ? Part::kTest : Part::kTrain;
}

constexpr std::uint64_t CountOf(Part part) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < kGrid; ++i) count += PartOf(GridShape(i)) == part;
  return count;
}

template <Part kPart>
std::string GridMember(std::uint64_t index) {
  for (std::size_t i = 0; i < kGrid; ++i) {
    if (PartOf(GridShape(i)) == kPart && index-- == 0) return ShapeName(GridShape(i));
  }
  return "";
}

template <Part kPart>
Checked<Benchmark> OpenGrid(std::string_view member, const Limits& limits) {
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < CountOf(kPart); ++i) {
    names.push_back(GridMember<kPart>(i));
    if (names.back() == member) return OpenAny(member, limits);
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return RejectMember(
      member,
      fmt::format("it is none of the {} shapes (benchmark://conv-v0/ has any shape)", names.size()),
      Nearest(member, candidates).value_or(""));
}

// The kernel is as large as the image: one output point per image and output channel.
constexpr std::string_view kPermutedName = "conv64_8_1_1_24_24_64";
constexpr Shape kPermuted{.n = 64, .c = 8, .h = 24, .w = 24, .m = 64, .kh = 24, .kw = 24};

std::string PermutationMember(std::uint64_t index) {
  return fmt::format("{}_{}", kPermutedName, PermutationName(Loops{}.size(), index));
}

Checked<Benchmark> OpenPermutation(std::string_view member, const Limits& limits) {
  const Loops loops = LoopsOf(kPermuted);
  std::optional<std::vector<std::size_t>> order;
  if (member.starts_with(kPermutedName) && member.substr(kPermutedName.size()).starts_with('_')) {
    order = ParsePermutation(member.substr(kPermutedName.size() + 1), loops.size());
  }
  if (!order) {
    return RejectMember(
        member,
        fmt::format("it must be {}_<order> with each digit from 0 to {} once: the loops"
                    " n, c, ho, wo, kh, kw, m from the outermost in",
                    kPermutedName, loops.size() - 1),
        PermutationMember(0));
  }
  Loops permuted;
  for (std::size_t i = 0; i < loops.size(); ++i) permuted[i] = loops[(*order)[i]];
  return OpenShape(kPermuted, permuted, limits);
}

constexpr std::array kRules = {
    DatasetRules{{"benchmark://conv-v0/",
                  "valid convolutions, stride 1: conv<N>_<C>_<H>_<W>__<M>_<C>_<KH>_<KW>", 0,
                  "benchmark://conv-v0/conv1_8_16_16__8_8_3_3"},
                 nullptr,
                 OpenAny},
    DatasetRules{{"benchmark://conv_train-v0/", "3 x 3 convolutions, LoopTune's training shapes",
                  CountOf(Part::kTrain), "benchmark://conv_train-v0/conv1_32_56_56__32_32_3_3"},
                 GridMember<Part::kTrain>,
                 OpenGrid<Part::kTrain>},
    DatasetRules{{"benchmark://conv_test-v0/",
                  "3 x 3 convolutions, LoopTune's test shapes; three need over 2 GiB",
                  CountOf(Part::kTest), "benchmark://conv_test-v0/conv32_128_112_112__64_128_3_3"},
                 GridMember<Part::kTest>,
                 OpenGrid<Part::kTest>},
    DatasetRules{
        {"benchmark://conv64_8_1_1_24_24_64-v0/",
         "one 24 x 24 convolution, its 7 loops in every order", PermutationCount(Loops{}.size()),
         "benchmark://conv64_8_1_1_24_24_64-v0/conv64_8_1_1_24_24_64_0123456"},
        PermutationMember,
        OpenPermutation},
};

}  // namespace

std::span<const DatasetRules> ConvolutionDatasets() { return kRules; }

}  // namespace loopfleet::looptree
