#include "common/looptree/program/program.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "common/base/check.h"

namespace loopfleet::looptree {
namespace {

constexpr std::array<std::string_view, 18> kOpNames = {
    "constant", "write", "read", "view", "copy", "add", "subtract", "multiply",   "divide",
    "min",      "max",   "log",  "exp",  "sqrt", "abs", "negate",   "reciprocal", "name"};
constexpr std::size_t kFirstOwn = static_cast<std::size_t>(Op::kGreater);
constexpr std::array<std::string_view, 13> kOwnOpNames = {
    "greater", "greater_equal", "equal", "select", "tanh", "erf",  "sin",
    "cos",     "floor",         "ceil",  "round",  "sign", "power"};

bool Contains(const std::vector<DimId>& dims, DimId dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

}  // namespace

std::string_view OpName(Op op) {
  const auto number = static_cast<std::size_t>(op);
  if (number < kOpNames.size()) return kOpNames[number];
  LF_CHECK(OpOf(static_cast<std::int64_t>(number)).has_value(), "operation {}", number);
  return kOwnOpNames[number - kFirstOwn];
}

std::optional<Op> OpOf(std::int64_t number) {
  constexpr auto kOwn = static_cast<std::int64_t>(kFirstOwn);
  const bool known = (number >= 0 && number < std::ssize(kOpNames)) ||
                     (number >= kOwn && number < kOwn + std::ssize(kOwnOpNames));
  if (!known) return std::nullopt;
  return static_cast<Op>(number);
}

bool IsArithmetic(Op op) {
  return op != Op::kRead && op != Op::kWrite && op != Op::kView && op != Op::kCopy &&
         op != Op::kConstant;
}

std::vector<DimId> Program::ReducedDims(NodeId node) const {
  std::vector<DimId> reduced;
  const Node& self = nodes[node];
  if (self.op == Op::kView) return reduced;
  for (const NodeId input : self.inputs) {
    for (const DimId dim : nodes[input].dims) {
      if (!Contains(self.dims, dim) && !Contains(reduced, dim)) reduced.push_back(dim);
    }
  }
  return reduced;
}

std::int64_t Program::ElementCount(NodeId node) const {
  std::int64_t count = 1;
  for (const DimId dim : nodes[node].dims) count *= dims[dim].size;
  return count;
}

}  // namespace loopfleet::looptree
