// Dialect simple's datasets: point-wise addition (spec A.1, A.2).

#include <fmt/format.h>

#include <array>
#include <memory>
#include <utility>

#include "common/base/result.h"
#include "common/looptree/datasets/dataset_rules.h"
#include "common/looptree/program/number_text.h"
#include "common/looptree/tree/simple_tree.h"

namespace loopfleet::looptree {
namespace {

constexpr std::int64_t kMaxVectorLength = 8'388'607;  // spec A.1: 8 * 2^20 - 1

template <Target kTarget>
Checked<Benchmark> OpenVectorAdd(std::string_view member, const Limits& limits) {
  const auto length = ParseInteger(member);
  if (!length || *length < 1 || *length > kMaxVectorLength) {
    return RejectMember(member, fmt::format("the vector length must be a whole number from 1 to {}",
                                            kMaxVectorLength));
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
  return Benchmark{Dialect::kSimple, kTarget, std::move(start)};
}

std::string Length(std::uint64_t index) { return fmt::format("{}", index + 1); }

constexpr std::array kRules = {
    DatasetRules{
        {"benchmark://loop_tool-cpu-v0/",
         "point-wise addition of two vectors of N floats, dialect simple",
         static_cast<std::uint64_t>(kMaxVectorLength), "benchmark://loop_tool-cpu-v0/1024"},
        Length,
        OpenVectorAdd<Target::kCpu>},
    DatasetRules{
        {"benchmark://loop_tool-cuda-v0/",
         "point-wise addition of two vectors of N floats on a GPU, dialect simple",
         static_cast<std::uint64_t>(kMaxVectorLength), "benchmark://loop_tool-cuda-v0/1024"},
        Length,
        OpenVectorAdd<Target::kCuda>},
};

}  // namespace

std::span<const DatasetRules> VectorDatasets() { return kRules; }

}  // namespace loopfleet::looptree
