#include "common/looptree/benchmark.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/result.h"
#include "common/base/suggestion.h"
#include "common/looptree/dataset_rules.h"
#include "common/looptree/number_text.h"
#include "common/looptree/simple_tree.h"
#include "common/looptree/text.h"

namespace loopfleet::looptree {
namespace {

std::unexpected<Rejection> Invalid(std::string message) {
  return Reject(RejectionCode::kInvalidBenchmark, std::move(message));
}

// The loops of a node in the given order, each covering its dimension at once.
NodeSchedule WholeLoops(const Program& program, std::initializer_list<DimId> order) {
  NodeSchedule schedule;
  for (const DimId dim : order)
    schedule.loops.push_back({.dim = dim, .size = program.dims[dim].size});
  return schedule;
}

Checked<Benchmark> OpenVectorAdd(std::string_view uri, std::string_view member, Target target,
                                 const Limits& limits) {
  const auto length = ParseInteger(member);
  if (!length || *length < 1 || *length > kMaxVectorLength) {
    return Invalid(fmt::format("{}: the vector length {} must be a whole number from 1 to {}",
                               Quoted(uri), Quoted(member), kMaxVectorLength));
  }
  auto program = std::make_shared<Program>();
  program->dims = {{"a", *length}};
  program->nodes = {{.op = Op::kRead, .dims = {0}},
                    {.op = Op::kRead, .dims = {0}},
                    {.op = Op::kAdd, .inputs = {0, 1}, .dims = {0}},
                    {.op = Op::kWrite, .inputs = {2}, .dims = {0}}};
  program->inputs = {0, 1};
  program->outputs = {3};
  LF_TRY(LoopTree start,
         BuildSimpleTree(std::move(program), SimpleLoops::Initial(*length), limits));
  return Benchmark{Dialect::kSimple, target, std::move(start)};
}

// "64_96_128" as `count` sizes >= 1.
std::optional<std::vector<std::int64_t>> ParseSizes(std::string_view text, std::size_t count) {
  std::vector<std::int64_t> sizes;
  for (const std::string_view part : SplitText(text, '_', count + 1)) {
    const auto size = ParseInteger(part);
    if (!size || *size < 1) return std::nullopt;
    sizes.push_back(*size);
  }
  if (sizes.size() != count) return std::nullopt;
  return sizes;
}

std::optional<std::vector<std::int64_t>> ParseMatrixName(std::string_view member) {
  if (!member.starts_with("mm")) return std::nullopt;
  return ParseSizes(member.substr(2), 3);
}

Checked<Benchmark> OpenMatrixProduct(const std::vector<std::int64_t>& sizes, const Limits& limits) {
  constexpr DimId kM = 0, kK = 1, kN = 2;
  auto program = std::make_shared<Program>();
  program->dims = {{"m", sizes[0]}, {"k", sizes[2]}, {"n", sizes[1]}};
  program->nodes = {{.op = Op::kRead, .dims = {kM, kK}},
                    {.op = Op::kRead, .dims = {kK, kN}},
                    {.op = Op::kMultiply, .inputs = {0, 1}, .dims = {kM, kK, kN}},
                    {.op = Op::kAdd, .inputs = {2}, .dims = {kM, kN}},
                    {.op = Op::kWrite, .inputs = {3}, .dims = {kM, kN}}};
  program->inputs = {0, 1};
  program->outputs = {4};
  Schedule schedule = {{},
                       {},
                       WholeLoops(*program, {kM, kK, kN}),
                       WholeLoops(*program, {kM, kK, kN}),
                       WholeLoops(*program, {kM, kN})};
  LF_TRY(LoopTree start, LoopTree::Build(std::move(program), std::move(schedule), limits));
  return Benchmark{Dialect::kAgent, Target::kCpu, std::move(start)};
}

Checked<Benchmark> OpenMm(std::string_view uri, std::string_view member, const Limits& limits) {
  const auto sizes = ParseMatrixName(member);
  if (!sizes) {
    return Invalid(fmt::format("{}: {} must be mm<M>_<N>_<K> with sizes of at least 1", Quoted(uri),
                               Quoted(member)));
  }
  return OpenMatrixProduct(*sizes, limits);
}

Checked<Benchmark> OpenMmRange(std::string_view uri, std::string_view member,
                               const Limits& limits) {
  const auto sizes = ParseMatrixName(member);
  if (!sizes || !kMmRange.Has((*sizes)[0]) || !kMmRange.Has((*sizes)[1]) ||
      !kMmRange.Has((*sizes)[2])) {
    return Invalid(
        fmt::format("{}: {} must be mm<M>_<N>_<K> with sizes {}, {}, ... {} ({}... has"
                    " matrix products of any size)",
                    Quoted(uri), Quoted(member), kMmRange.first, kMmRange.first + kMmRange.step,
                    kMmRange.last(), kMmPrefix));
  }
  return OpenMatrixProduct(*sizes, limits);
}

// conv<N>_<C>_<H>_<W>__<M>_<C>_<KH>_<KW>
Checked<Benchmark> OpenConv(std::string_view uri, std::string_view member, const Limits& limits) {
  const std::size_t middle = member.find("__");
  std::optional<std::vector<std::int64_t>> image, kernel;
  if (member.starts_with("conv") && middle != std::string_view::npos) {
    image = ParseSizes(member.substr(4, middle - 4), 4);
    kernel = ParseSizes(member.substr(middle + 2), 4);
  }
  if (!image || !kernel || (*image)[1] != (*kernel)[1] || (*image)[2] < (*kernel)[2] ||
      (*image)[3] < (*kernel)[3]) {
    return Invalid(
        fmt::format("{}: {} must be conv<N>_<C>_<H>_<W>__<M>_<C>_<KH>_<KW> with sizes of"
                    " at least 1, the same C twice, KH <= H and KW <= W",
                    Quoted(uri), Quoted(member)));
  }
  constexpr DimId kN = 0, kC = 1, kH = 2, kW = 3, kHo = 4, kWo = 5, kKh = 6, kKw = 7, kM = 8;
  auto program = std::make_shared<Program>();
  program->dims = {{"n", (*image)[0]},
                   {"c", (*image)[1]},
                   {"h", (*image)[2]},
                   {"w", (*image)[3]},
                   {"ho", (*image)[2] - (*kernel)[2] + 1},
                   {"wo", (*image)[3] - (*kernel)[3] + 1},
                   {"kh", (*kernel)[2]},
                   {"kw", (*kernel)[3]},
                   {"m", (*kernel)[0]}};
  program->nodes = {
      {.op = Op::kRead, .dims = {kN, kC, kH, kW}},
      {.op = Op::kView,
       .inputs = {0},
       .dims = {kN, kC, kHo, kWo, kKh, kKw},
       .view = {{kN, {{kN, 1}}, 0},
                {kC, {{kC, 1}}, 0},
                {kH, {{kHo, 1}, {kKh, 1}}, 0},
                {kW, {{kWo, 1}, {kKw, 1}}, 0}}},
      {.op = Op::kRead, .dims = {kM, kC, kKh, kKw}},
      {.op = Op::kMultiply, .inputs = {1, 2}, .dims = {kN, kC, kHo, kWo, kKh, kKw, kM}},
      {.op = Op::kAdd, .inputs = {3}, .dims = {kN, kM, kHo, kWo}},
      {.op = Op::kWrite, .inputs = {4}, .dims = {kN, kM, kHo, kWo}}};
  program->inputs = {0, 2};
  program->outputs = {5};
  const NodeSchedule points = WholeLoops(*program, {kN, kC, kHo, kWo, kKh, kKw, kM});
  Schedule schedule = {{}, {}, {}, points, points, WholeLoops(*program, {kN, kHo, kWo, kM})};
  LF_TRY(LoopTree start, LoopTree::Build(std::move(program), std::move(schedule), limits));
  return Benchmark{Dialect::kAgent, Target::kCpu, std::move(start)};
}

Checked<Benchmark> OpenUri(std::string_view uri, const Limits& limits) {
  const auto member_of = [&](std::string_view prefix) { return uri.substr(prefix.size()); };
  if (uri.starts_with(kLoopToolCpuPrefix)) {
    return OpenVectorAdd(uri, member_of(kLoopToolCpuPrefix), Target::kCpu, limits);
  }
  if (uri.starts_with(kLoopToolCudaPrefix)) {
    return OpenVectorAdd(uri, member_of(kLoopToolCudaPrefix), Target::kCuda, limits);
  }
  if (uri.starts_with(kMmRangePrefix)) return OpenMmRange(uri, member_of(kMmRangePrefix), limits);
  if (uri.starts_with(kMmPrefix)) return OpenMm(uri, member_of(kMmPrefix), limits);
  if (uri.starts_with(kConvPrefix)) return OpenConv(uri, member_of(kConvPrefix), limits);
  std::vector<std::string_view> prefixes;
  for (const Dataset& dataset : Datasets()) prefixes.push_back(dataset.prefix);
  const std::size_t end = uri.starts_with(kScheme) ? uri.find('/', kScheme.size()) : uri.find('/');
  const std::string_view named = uri.substr(0, end == std::string_view::npos ? end : end + 1);
  return Invalid(
      fmt::format("unknown benchmark {}{}", Quoted(uri), NearestSuffix(named, prefixes)));
}

}  // namespace

Checked<Benchmark> OpenBenchmark(const Source& source, const Limits& limits) {
  if (const auto* uri = std::get_if<BenchmarkUri>(&source)) return OpenUri(uri->text, limits);
  LF_TRY(LoopTree start, ParseIr(std::get<IrText>(source).text, limits));
  return Benchmark{Dialect::kAgent, Target::kCpu, std::move(start)};
}

}  // namespace loopfleet::looptree
