#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/looptree/interpret.h"

// Each output is worked out point by point from the program alone. Points are taken a lane at a time:
// up to kLane points that differ along one dimension, so that the cost of walking the graph is shared.
// Results of reductions, and of operations that several others read, are held whole; everything else
// is worked out again where it is needed, so a product m*k*n is never held.

namespace loopfleet::looptree {
namespace {

constexpr std::size_t kLane = 256;
// An operation that several others read is held whole up to this many elements; beyond it, it is
// worked out for each reader.
constexpr std::int64_t kHeldElements = std::int64_t{1} << 26;
// Half the distance between neighbouring float32 values, relative: what one rounding may change.
constexpr double kRounding = 0x1p-24;
// exp, log and square root of a target's library may be off by a little more than one rounding.
constexpr double kLibraryRounding = 4 * kRounding;
// Covers the second-order terms that the first-order bound leaves out.
constexpr double kSecondOrder = 1.01;
constexpr double kExactBelow = 0x1p24;

// A value and a bound on how far a float32 computation of it may be off.
struct Lane {
  std::array<double, kLane> value;
  std::array<double, kLane> error;
};

// The points of a lane: along dim d, point i has the index base[d] + i * step[d].
struct Points {
  std::vector<std::int64_t> base;
  std::vector<std::int64_t> step;
  std::size_t count = 0;
};

struct Held {
  std::vector<double> value;
  std::vector<double> error;  // empty: exact
};

// What is known of a node's values before computing any: are they integers that float32 holds exactly?
struct Magnitude {
  bool integral = false;
  double bound = 0;
};

double Identity(Op op) {
  switch (op) {
    case Op::kMultiply: return 1;
    case Op::kMin: return std::numeric_limits<double>::infinity();
    case Op::kMax: return -std::numeric_limits<double>::infinity();
    default: return 0;
  }
}

class Evaluator {
 public:
  Evaluator(const Program& program, std::span<const Tensor> inputs)
      : program_(program), held_(program.nodes.size()), input_of_(program.nodes.size(), nullptr) {
    LF_CHECK(inputs.size() == program.inputs.size(), "{} tensors for {} inputs", inputs.size(),
             program.inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      LF_CHECK(static_cast<std::int64_t>(inputs[i].size()) == program.ElementCount(program.inputs[i]),
               "input {} has {} elements", i, inputs[i].size());
      input_of_[program.inputs[i]] = &inputs[i];
    }
    exact_ = IsExact();
    lanes_.resize(program.nodes.size());
    for (std::size_t n = 0; n < program.nodes.size(); ++n) {
      lanes_[n].resize(program.nodes[n].inputs.size());
    }
  }

  Reference Run() {
    Reference reference;
    HoldWhatIsShared();
    for (const NodeId output : program_.outputs) {
      Held result = HoldWhole(output);
      for (double& error : result.error) error *= kSecondOrder;
      reference.outputs.push_back(std::move(result.value));
      reference.tolerance.push_back(std::move(result.error));
    }
    return reference;
  }

 private:
  // Exact if every operation maps integers to integers and none can reach 2^24 in between.
  bool IsExact() const {
    std::vector<std::optional<Magnitude>> known(program_.nodes.size());
    for (const NodeId output : program_.outputs) {
      if (!MagnitudeOf(output, known).integral) return false;
    }
    return true;
  }

  Magnitude MagnitudeOf(NodeId id, std::vector<std::optional<Magnitude>>& known) const {
    if (known[id]) return *known[id];
    const Node& node = program_.nodes[id];
    Magnitude result;
    if (input_of_[id] != nullptr) {
      result.integral = true;
      for (const float x : *input_of_[id]) {
        result.integral = result.integral && std::nearbyint(x) == x;
        result.bound = std::max(result.bound, std::abs(static_cast<double>(x)));
      }
    } else if (node.op == Op::kConstant) {
      result = {std::nearbyint(node.constant) == node.constant, std::abs(node.constant)};
    } else {
      std::vector<Magnitude> of;
      for (const NodeId input : node.inputs) of.push_back(MagnitudeOf(input, known));
      result = Combine(id, of);
    }
    if (!(result.bound < kExactBelow)) result.integral = false;
    known[id] = result;
    return result;
  }

  Magnitude Combine(NodeId id, const std::vector<Magnitude>& of) const {
    const Node& node = program_.nodes[id];
    Magnitude result;
    result.integral = std::all_of(of.begin(), of.end(), [](const Magnitude& m) { return m.integral; });
    double terms = 1;
    for (const DimId dim : program_.ReducedDims(id)) {
      terms *= static_cast<double>(program_.dims[dim].size);
    }
    switch (node.op) {
      case Op::kAdd:
      case Op::kSubtract:
        for (const Magnitude& m : of) result.bound += m.bound;
        result.bound *= terms;
        break;
      case Op::kMultiply:
        result.bound = 1;
        for (const Magnitude& m : of) result.bound *= m.bound;
        if (terms > 1) result.bound = std::pow(std::max(result.bound, 1.0), terms);
        break;
      case Op::kCopy:
      case Op::kRead:
      case Op::kWrite:
      case Op::kView:
      case Op::kName:
      case Op::kMin:
      case Op::kMax:
      case Op::kAbs:
      case Op::kNegate:
        for (const Magnitude& m : of) result.bound = std::max(result.bound, m.bound);
        break;
      default:
        result = {false, std::numeric_limits<double>::infinity()};
    }
    return result;
  }

  void HoldWhatIsShared() {
    std::vector<int> readers(program_.nodes.size(), 0);
    for (const Node& node : program_.nodes) {
      for (const NodeId input : node.inputs) ++readers[input];
    }
    std::vector<bool> done(program_.nodes.size(), false);
    for (const NodeId output : program_.outputs) HoldBelow(output, readers, done);
  }

  // Depth-first, so that what a node is made of is held before it.
  void HoldBelow(NodeId id, const std::vector<int>& readers, std::vector<bool>& done) {
    if (done[id]) return;
    done[id] = true;
    for (const NodeId input : program_.nodes[id].inputs) HoldBelow(input, readers, done);
    if (input_of_[id] != nullptr || program_.nodes[id].inputs.empty()) return;
    const bool shared = readers[id] > 1 && program_.ElementCount(id) <= kHeldElements;
    if (shared || program_.IsReduction(id)) held_[id] = HoldWhole(id);
  }

  Held HoldWhole(NodeId id) {
    const Node& node = program_.nodes[id];
    const std::vector<DimId> reduced = program_.ReducedDims(id);
    Held result;
    const auto count = static_cast<std::size_t>(program_.ElementCount(id));
    result.value.assign(count, 0);
    if (!exact_) result.error.assign(count, 0);
    const std::optional<DimId> lane = LaneOf(node, reduced);
    const bool lane_is_reduced =
        lane && std::find(reduced.begin(), reduced.end(), *lane) != reduced.end();

    std::vector<DimId> outer;
    for (const DimId dim : node.dims) {
      if (lane != dim) outer.push_back(dim);
    }
    Points points{.base = std::vector<std::int64_t>(program_.dims.size(), 0),
                  .step = std::vector<std::int64_t>(program_.dims.size(), 0)};
    if (lane) points.step[*lane] = 1;
    const std::int64_t lane_size = lane ? program_.dims[*lane].size : 1;
    const std::int64_t lane_stride = lane && !lane_is_reduced ? StrideIn(node, *lane) : 0;
    do {
      if (lane_is_reduced) {
        const std::size_t at = OffsetIn(node, points.base);
        ReduceAlongLane(id, reduced, *lane, points, result, at);
        continue;
      }
      for (std::int64_t start = 0; start < lane_size; start += kLane) {
        if (lane) points.base[*lane] = start;
        points.count = static_cast<std::size_t>(
            std::min<std::int64_t>(kLane, lane_size - start));
        Lane& out = whole_;
        ReduceAcrossLane(id, reduced, points, out);
        const std::size_t at = OffsetIn(node, points.base);
        for (std::size_t i = 0; i < points.count; ++i) {
          result.value[at + i * static_cast<std::size_t>(lane_stride)] = out.value[i];
          if (!exact_) result.error[at + i * static_cast<std::size_t>(lane_stride)] = out.error[i];
        }
      }
      if (lane) points.base[*lane] = 0;
    } while (Advance(outer, points.base));
    return result;
  }

  // Lanes run along the result's largest dimension, or along a reduced one if that is much longer.
  std::optional<DimId> LaneOf(const Node& node, const std::vector<DimId>& reduced) const {
    std::optional<DimId> best;
    const auto size = [&](DimId dim) { return program_.dims[dim].size; };
    for (const DimId dim : node.dims) {
      if (!best || size(dim) >= size(*best)) best = dim;
    }
    if (best && size(*best) >= 16) return best;
    for (const DimId dim : reduced) {
      if (!best || size(dim) > size(*best)) best = dim;
    }
    return best;
  }

  // Each point of the lane is a result of its own; reduced dims are walked one index after another.
  void ReduceAcrossLane(NodeId id, const std::vector<DimId>& reduced, Points& points, Lane& out) {
    if (reduced.empty()) return ComputePointwise(id, points, out);
    const Op op = program_.nodes[id].op;
    Accumulators sums(op, points.count);
    Lane& term = lanes_[id][0];
    do {
      Compute(program_.nodes[id].inputs[0], points, term);
      if (exact_ && op == Op::kAdd) {
        sums.AddExactly(term, points.count);
        continue;
      }
      for (std::size_t i = 0; i < points.count; ++i) {
        sums.Add(i, term.value[i], exact_ ? 0 : term.error[i]);
      }
    } while (Advance(reduced, points.base));
    for (std::size_t i = 0; i < points.count; ++i) {
      out.value[i] = sums.Value(i);
      out.error[i] = exact_ ? 0 : sums.Error(i);
    }
  }

  // All points of the lane belong to one result.
  void ReduceAlongLane(NodeId id, const std::vector<DimId>& reduced, DimId lane, Points& points,
                       Held& result, std::size_t at) {
    std::vector<DimId> walked;
    for (const DimId dim : reduced) {
      if (dim != lane) walked.push_back(dim);
    }
    Accumulators sum(program_.nodes[id].op, 1);
    Lane& term = lanes_[id][0];
    const std::int64_t size = program_.dims[lane].size;
    do {
      for (std::int64_t start = 0; start < size; start += kLane) {
        points.base[lane] = start;
        points.count = static_cast<std::size_t>(std::min<std::int64_t>(kLane, size - start));
        Compute(program_.nodes[id].inputs[0], points, term);
        for (std::size_t i = 0; i < points.count; ++i) {
          sum.Add(0, term.value[i], exact_ ? 0 : term.error[i]);
        }
      }
      points.base[lane] = 0;
    } while (Advance(walked, points.base));
    result.value[at] = sum.Value(0);
    if (!exact_) result.error[at] = sum.Error(0);
  }

  // Float32 sums of n terms, in any order, are off by at most (n - 1) roundings of the sum of
  // magnitudes; products likewise by n roundings of the product of magnitudes.
  class Accumulators {
   public:
    Accumulators(Op op, std::size_t count) : op_(op) {
      std::fill_n(value_.begin(), count, Identity(op));
      std::fill_n(magnitude_.begin(), count, op == Op::kMultiply ? 1.0 : 0.0);
      std::fill_n(with_error_.begin(), count, op == Op::kMultiply ? 1.0 : 0.0);
    }

    void Add(std::size_t i, double term, double error) {
      if (i == 0) ++terms_;
      switch (op_) {
        case Op::kAdd:
          value_[i] += term;
          magnitude_[i] += std::abs(term);
          with_error_[i] += std::abs(term) + error;
          return;
        case Op::kMultiply:
          value_[i] *= term;
          magnitude_[i] *= std::abs(term);
          with_error_[i] *= std::abs(term) + error;
          return;
        case Op::kMin:
          value_[i] = std::min(value_[i], term);
          with_error_[i] = std::max(with_error_[i], error);
          return;
        case Op::kMax:
          value_[i] = std::max(value_[i], term);
          with_error_[i] = std::max(with_error_[i], error);
          return;
        default: LF_CHECK(false, "op {} cannot reduce", static_cast<int>(op_));
      }
    }

    // The common case of an exact sum: nothing but the sum.
    void AddExactly(const Lane& terms, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) value_[i] += terms.value[i];
    }

    double Value(std::size_t i) const { return value_[i]; }
    double Error(std::size_t i) const {
      if (op_ == Op::kMin || op_ == Op::kMax) return with_error_[i];
      return with_error_[i] - magnitude_[i] +
             static_cast<double>(terms_) * kRounding * with_error_[i];
    }

   private:
    const Op op_;
    std::uint64_t terms_ = 0;
    std::array<double, kLane> value_;
    std::array<double, kLane> magnitude_;
    std::array<double, kLane> with_error_;
  };

  void Compute(NodeId id, const Points& points, Lane& out) {
    const Node& node = program_.nodes[id];
    if (input_of_[id] != nullptr) {
      const float* tensor = input_of_[id]->data();
      return Gather(node, points, out, [&](std::size_t at) { return tensor[at]; }, nullptr);
    }
    if (held_[id]) {
      const double* values = held_[id]->value.data();
      return Gather(node, points, out, [&](std::size_t at) { return values[at]; },
                    exact_ ? nullptr : held_[id]->error.data());
    }
    ComputePointwise(id, points, out);
  }

  template <class Load>
  void Gather(const Node& node, const Points& points, Lane& out, Load load, const double* errors) {
    std::int64_t stride = 1, at = 0, step = 0;
    for (std::size_t d = node.dims.size(); d-- > 0;) {
      at += stride * points.base[node.dims[d]];
      step += stride * points.step[node.dims[d]];
      stride *= program_.dims[node.dims[d]].size;
    }
    for (std::size_t i = 0; i < points.count; ++i, at += step) {
      out.value[i] = load(static_cast<std::size_t>(at));
      if (!exact_) out.error[i] = errors != nullptr ? errors[at] : 0;
    }
  }

  void ComputePointwise(NodeId id, const Points& points, Lane& out) {
    const Node& node = program_.nodes[id];
    switch (node.op) {
      case Op::kConstant:
        std::fill_n(out.value.begin(), points.count, static_cast<float>(node.constant));
        std::fill_n(out.error.begin(), points.count, 0.0);
        return;
      case Op::kView: return Compute(node.inputs[0], Through(node, points), out);
      case Op::kCopy:
      case Op::kWrite:
      case Op::kRead:
      case Op::kName: return Compute(node.inputs[0], points, out);
      default: break;
    }
    for (std::size_t input = 0; input < node.inputs.size(); ++input) {
      Compute(node.inputs[input], points, lanes_[id][input]);
    }
    CopyLane(lanes_[id][0], points.count, out);
    if (node.inputs.size() == 1) return ApplyUnary(node.op, points.count, out);
    for (std::size_t input = 1; input < node.inputs.size(); ++input) {
      ApplyBinary(node.op, points.count, out, lanes_[id][input]);
    }
  }

  void CopyLane(const Lane& from, std::size_t count, Lane& to) const {
    std::copy_n(from.value.begin(), count, to.value.begin());
    if (!exact_) std::copy_n(from.error.begin(), count, to.error.begin());
  }

  Points Through(const Node& view, const Points& points) const {
    Points inner = points;
    for (const ViewIndex& index : view.view) {
      std::int64_t base = index.constant, step = 0;
      for (const AffineTerm& term : index.terms) {
        base += term.coefficient * points.base[term.dim];
        step += term.coefficient * points.step[term.dim];
      }
      inner.base[index.input_dim] = base;
      inner.step[index.input_dim] = step;
    }
    return inner;
  }

  void ApplyBinary(Op op, std::size_t count, Lane& a, const Lane& b) const {
    if (exact_ && op == Op::kMultiply) {
      for (std::size_t i = 0; i < count; ++i) a.value[i] *= b.value[i];
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const double x = a.value[i], y = b.value[i];
      double value = 0;
      switch (op) {
        case Op::kAdd: value = x + y; break;
        case Op::kSubtract: value = x - y; break;
        case Op::kMultiply: value = x * y; break;
        case Op::kDivide: value = x / y; break;
        case Op::kMin: value = std::min(x, y); break;
        case Op::kMax: value = std::max(x, y); break;
        default: LF_CHECK(false, "op {} takes one input", static_cast<int>(op));
      }
      a.value[i] = value;
      if (exact_) continue;
      const double ex = a.error[i], ey = b.error[i];
      double error = 0;
      switch (op) {
        case Op::kAdd:
        case Op::kSubtract: error = ex + ey; break;
        case Op::kMultiply: error = std::abs(x) * ey + std::abs(y) * ex + ex * ey; break;
        case Op::kDivide:
          error = std::abs(y) > ey
                      ? (std::abs(x) + ex) / (std::abs(y) - ey) - std::abs(x) / std::abs(y)
                      : std::numeric_limits<double>::infinity();
          break;
        default: error = std::max(ex, ey);
      }
      const bool rounds = op != Op::kMin && op != Op::kMax;
      a.error[i] = error + (rounds ? kRounding * (std::abs(value) + error) : 0);
    }
  }

  void ApplyUnary(Op op, std::size_t count, Lane& a) const {
    for (std::size_t i = 0; i < count; ++i) {
      const double x = a.value[i], ex = exact_ ? 0 : a.error[i];
      double value = 0, error = ex, rounding = kLibraryRounding;
      switch (op) {
        case Op::kAdd:
        case Op::kMultiply:
        case Op::kMin:
        case Op::kMax: value = x; rounding = 0; break;  // of one input
        case Op::kAbs: value = std::abs(x); rounding = 0; break;
        case Op::kNegate: value = -x; rounding = 0; break;
        case Op::kExp: value = std::exp(x); error = value * std::expm1(ex); break;
        case Op::kLog:
          value = std::log(x);
          error = x > ex ? std::log(x) - std::log(x - ex) : std::numeric_limits<double>::infinity();
          break;
        case Op::kSqrt:
          value = std::sqrt(x);
          error = std::sqrt(x + ex) - std::sqrt(std::max(x - ex, 0.0));
          break;
        case Op::kReciprocal:
          value = 1 / x;
          error = std::abs(x) > ex ? 1 / (std::abs(x) - ex) - 1 / std::abs(x)
                                   : std::numeric_limits<double>::infinity();
          break;
        default: LF_CHECK(false, "op {} takes two inputs", static_cast<int>(op));
      }
      a.value[i] = value;
      if (!exact_) a.error[i] = error + rounding * (std::abs(value) + error);
    }
  }

  std::int64_t StrideIn(const Node& node, DimId dim) const {
    std::int64_t stride = 1;
    for (std::size_t d = node.dims.size(); d-- > 0;) {
      if (node.dims[d] == dim) return stride;
      stride *= program_.dims[node.dims[d]].size;
    }
    return 0;
  }

  std::size_t OffsetIn(const Node& node, const std::vector<std::int64_t>& index) const {
    std::int64_t offset = 0;
    for (const DimId dim : node.dims) offset = offset * program_.dims[dim].size + index[dim];
    return static_cast<std::size_t>(offset);
  }

  // The next index along `dims`, the last one fastest; back at zero and false after the last.
  bool Advance(const std::vector<DimId>& dims, std::vector<std::int64_t>& index) const {
    for (std::size_t d = dims.size(); d-- > 0;) {
      if (++index[dims[d]] < program_.dims[dims[d]].size) return true;
      index[dims[d]] = 0;
    }
    return false;
  }

  const Program& program_;
  std::vector<std::optional<Held>> held_;
  std::vector<const Tensor*> input_of_;
  bool exact_ = false;
  std::vector<std::vector<Lane>> lanes_;  // for each operation, one for each of its inputs
  Lane whole_;                            // of the node that is being held
};

}  // namespace

Reference Evaluate(const Program& program, std::span<const Tensor> inputs) {
  return Evaluator(program, inputs).Run();
}

}  // namespace loopfleet::looptree
