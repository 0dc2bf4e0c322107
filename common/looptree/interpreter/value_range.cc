#include "common/looptree/interpreter/value_range.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "common/looptree/program/view_map.h"

namespace loopfleet::looptree {
namespace {

constexpr double kLargestExact = 0x1p24;

// The result is one of the operands, or its negative.
bool IsMove(Op op) {
  switch (op) {
    case Op::kRead:
    case Op::kWrite:
    case Op::kView:
    case Op::kCopy:
    case Op::kMin:
    case Op::kMax:
    case Op::kAbs:
    case Op::kNegate: return true;
    default: return false;
  }
}

// The result is one of few whole numbers, or the operand rounded to one; or one of two operands.
bool IsChoice(Op op) {
  switch (op) {
    case Op::kGreater:
    case Op::kGreaterEqual:
    case Op::kEqual:
    case Op::kSelect:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound:
    case Op::kSign: return true;
    default: return false;
  }
}

bool KeepsIntegers(Op op) {
  return IsMove(op) || op == Op::kAdd || op == Op::kSubtract || op == Op::kMultiply;
}

// An infinite number, such as fills up a maximum, rounds nothing. NaN is not exact: with it the
// order of operations matters, as max(NaN, 1) is not max(1, NaN).
ValueRange RangeOfNumber(double number) {
  const auto rounded = static_cast<double>(static_cast<float>(number));
  const double magnitude = std::isfinite(rounded) ? std::abs(rounded) : 0;
  return {.exact = !std::isnan(rounded),
          .integer = std::trunc(rounded) == rounded,
          .magnitude = magnitude,
          .sum = magnitude,
          .minus_infinity = rounded < 0 && std::isinf(rounded),
          .plus_infinity = rounded > 0 && std::isinf(rounded)};
}

void AddInfinities(const ValueRange& from, ValueRange& to) {
  to.minus_infinity |= from.minus_infinity;
  to.plus_infinity |= from.plus_infinity;
}

// Whether arithmetic on numbers of this range may make NaN of infinite ones.
bool MakesNan(Op op, const ValueRange& range) {
  if (op == Op::kAdd) return range.minus_infinity && range.plus_infinity;
  return range.minus_infinity || range.plus_infinity;
}

class Ranges {
 public:
  Ranges(const Program& program, const ProgramFacts& facts)
      : program_(program), facts_(facts), ranges_(program.nodes.size()) {}

  std::vector<ValueRange> Of(std::span<const ValueRange> inputs) {
    LF_CHECK(inputs.size() == program_.inputs.size(), "{} ranges of {} inputs", inputs.size(),
             program_.inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) ranges_[program_.inputs[i]] = inputs[i];
    for (const NodeId id : facts_.order) {
      if (program_.nodes[id].op != Op::kRead) ranges_[id] = RangeOf(id);
    }
    return std::move(ranges_);
  }

 private:
  // The number of points along the dims of `dims` that `inner` lacks: how often each element over
  // `inner` is used.
  double PointsBeside(const DimSet& dims, const DimSet& inner) const {
    double points = 1;
    for (DimId dim = 0; dim < program_.dims.size(); ++dim) {
      if (dims.Has(dim) && !inner.Has(dim)) points *= static_cast<double>(program_.dims[dim].size);
    }
    return points;
  }

  // Bound on the sum of the magnitudes of the operation's values over `dims`, before any reduction.
  // A view may repeat an element any number of times, so its sum is unknown.
  double SumOver(NodeId id, const DimSet& dims) const {
    const Node& node = program_.nodes[id];
    if (node.op == Op::kView) return std::numeric_limits<double>::infinity();
    const auto sum_of = [&](NodeId input) {
      return ranges_[input].sum * PointsBeside(dims, facts_.nodes[input].dims);
    };
    double sum = 0;
    if (node.op != Op::kMultiply || node.inputs.size() == 1) {
      for (const NodeId input : node.inputs) sum += sum_of(input);
      return sum;
    }
    sum = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      double with_others = sum_of(node.inputs[i]);
      for (std::size_t j = 0; j < node.inputs.size(); ++j) {
        if (j != i) with_others *= ranges_[node.inputs[j]].magnitude;
      }
      sum = std::min(sum, with_others);
    }
    return sum;
  }

  // The result of a choice has the range of what is chosen from.
  ValueRange RangeOfChoice(const Node& node) const {
    ValueRange range{.exact = true, .integer = true};
    for (const NodeId input : node.inputs) range.exact &= ranges_[input].exact;
    if (node.op == Op::kSelect) {
      for (const NodeId input : {node.inputs[1], node.inputs[2]}) {
        AddInfinities(ranges_[input], range);
        range.integer &= ranges_[input].integer;
        range.magnitude = std::max(range.magnitude, ranges_[input].magnitude);
      }
    } else if (node.op == Op::kFloor || node.op == Op::kCeil || node.op == Op::kRound) {
      range.magnitude = std::ceil(ranges_[node.inputs[0]].magnitude);
      AddInfinities(ranges_[node.inputs[0]], range);
    } else {
      range.magnitude = 1;
    }
    return range;
  }

  ValueRange RangeOf(NodeId id) const {
    const Node& node = program_.nodes[id];
    const ProgramFacts::NodeFacts& facts = facts_.nodes[id];
    if (node.op == Op::kConstant || IsChoice(node.op)) {
      ValueRange range =
          node.op == Op::kConstant ? RangeOfNumber(node.constant) : RangeOfChoice(node);
      range.sum = range.magnitude * PointsBeside(facts.dims, {});
      return range;
    }
    ValueRange range{.exact = true, .integer = KeepsIntegers(node.op)};
    bool first = true;
    for (const NodeId input : node.inputs) {
      range.exact &= ranges_[input].exact;
      range.integer &= ranges_[input].integer;
      AddInfinities(ranges_[input], range);
      const double magnitude = ranges_[input].magnitude;
      if (first) {
        range.magnitude = magnitude;
      } else if (node.op == Op::kMultiply) {
        range.magnitude *= magnitude;
      } else if (node.op == Op::kMin || node.op == Op::kMax) {
        range.magnitude = std::max(range.magnitude, magnitude);
      } else {
        range.magnitude += magnitude;
      }
      first = false;
    }
    if (NeedsGuard(program_, node)) {
      const ValueRange outside = RangeOfNumber(node.outside);
      range.integer &= outside.integer;
      AddInfinities(outside, range);
      range.exact &= outside.exact;
      range.magnitude = std::max(range.magnitude, outside.magnitude);
    }
    const double reduced_points = PointsBeside(facts.reduced, {});
    const bool reduces = !facts.reduced.empty();
    if (reduces && node.op == Op::kAdd) {
      // A result is a sum of operand elements. Each occurs once per reduced point that its operand
      // does not run over.
      range.magnitude = std::min(range.magnitude * reduced_points, SumOver(id, facts.reduced));
    }
    if (reduces && node.op == Op::kMultiply) {
      range.magnitude = std::pow(std::max(range.magnitude, 1.0), reduced_points);
    }
    range.sum = range.magnitude * PointsBeside(facts.dims, {});
    if (!reduces || node.op == Op::kAdd) {
      range.sum = std::min(range.sum, SumOver(id, facts.iteration));
    }
    const bool small_integer = range.integer && range.magnitude <= kLargestExact;
    range.exact &= IsMove(node.op) || (small_integer && !MakesNan(node.op, range));
    if (node.op == Op::kNegate) std::swap(range.minus_infinity, range.plus_infinity);
    if (node.op == Op::kAbs) range.plus_infinity |= range.minus_infinity;
    return range;
  }

  const Program& program_;
  const ProgramFacts& facts_;
  std::vector<ValueRange> ranges_;
};

}  // namespace

ValueRange RangeOfInput(std::span<const float> input) {
  ValueRange range{.exact = true, .integer = true};
  for (const float element : input) {
    const double magnitude = std::abs(static_cast<double>(element));
    range.integer &= std::trunc(element) == element;
    range.magnitude = std::max(range.magnitude, magnitude);
    range.sum += magnitude;
  }
  return range;
}

std::vector<ValueRange> RangesOf(const Program& program, const ProgramFacts& facts,
                                 std::span<const ValueRange> inputs) {
  return Ranges(program, facts).Of(inputs);
}

}  // namespace loopfleet::looptree
