// Evaluate: computes in float64, in pieces of kLanes neighbouring points, so that each operation of
// any program is a plain loop over lanes that the compiler vectorises.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/looptree/interpreter/access.h"
#include "common/looptree/interpreter/arithmetic.h"
#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/interpreter/lanes.h"
#include "common/looptree/interpreter/value_range.h"
#include "common/looptree/program/program_facts.h"

namespace loopfleet::looptree {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A node's whole result, row-major over its dims.
struct Stored {
  std::vector<double> values;
  std::vector<double> errors;  // error bounds; empty: exact
};

// How a source is read: the element for the point at `index`, and the step between lanes.
struct Load {
  NodeId source = 0;
  std::int64_t constant = 0;
  std::vector<AffineTerm> terms;
  std::int64_t lane_step = 0;

  // The dims of the source with guarded indices; not in `terms`. All in the map of one view.
  struct Guarded {
    std::int64_t constant = 0;
    std::vector<AffineTerm> terms;
    std::int64_t lane_step = 0;
    std::int64_t divisor = 1;
    std::int64_t size = 1;
    std::int64_t stride = 1;
  };
  std::vector<Guarded> guarded;
  double outside = 0;

  std::int64_t At(const std::array<std::int64_t, kMaxDims>& index) const {
    return Sum(constant, terms, index);
  }

  // The element for a lane; nullopt: outside.
  std::optional<std::size_t> GuardedAt(const std::array<std::int64_t, kMaxDims>& index,
                                       std::int64_t lane) const {
    std::int64_t at = At(index) + lane * lane_step;
    for (const Guarded& dim : guarded) {
      const std::int64_t along = Sum(dim.constant, dim.terms, index) + lane * dim.lane_step;
      if (along < 0 || along % dim.divisor != 0 || along / dim.divisor >= dim.size) {
        return std::nullopt;
      }
      at += along / dim.divisor * dim.stride;
    }
    return static_cast<std::size_t>(at);
  }

 private:
  static std::int64_t Sum(std::int64_t at, const std::vector<AffineTerm>& terms,
                          const std::array<std::int64_t, kMaxDims>& index) {
    for (const AffineTerm& term : terms) at += term.coefficient * index[term.dim];
    return at;
  }
};

// One operation inside a piece: loads a stored result, or combines earlier results of the same
// piece.
struct PieceStep {
  NodeId node = 0;
  std::optional<Load> load;
};

class Evaluator {
 public:
  Evaluator(const Program& program, std::span<const Tensor> inputs)
      : program_(program),
        inputs_(program.nodes.size()),
        facts_(ProgramFacts::OfValid(program)),
        stored_(program.nodes.size()) {
    LF_CHECK(inputs.size() == program.inputs.size(), "{} inputs for {}", inputs.size(),
             program.inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const NodeId id = program.inputs[i];
      LF_CHECK(static_cast<std::int64_t>(inputs[i].size()) == program.ElementCount(id),
               "input {} has {} elements", i, inputs[i].size());
      inputs_[id] = inputs[i];
    }
  }

  Reference Run() {
    std::vector<ValueRange> ranges;
    for (const NodeId id : program_.inputs) ranges.push_back(RangeOfInput(inputs_[id]));
    ranges_ = RangesOf(program_, *facts_, ranges);
    for (const NodeId id : facts_->order) {
      if (IsStored(id)) Store(id);
    }
    Reference reference;
    for (const NodeId id : program_.outputs) {
      reference.outputs.push_back(std::move(stored_[id].values));
      reference.tolerance.push_back(std::move(stored_[id].errors));
    }
    return reference;
  }

 private:
  bool Reduces(NodeId id) const { return !facts_->nodes[id].reduced.empty(); }

  double ReducedPoints(NodeId id) const {
    double points = 1;
    for (DimId dim = 0; dim < program_.dims.size(); ++dim) {
      if (facts_->nodes[id].reduced.Has(dim))
        points *= static_cast<double>(program_.dims[dim].size);
    }
    return points;
  }

  // Whether the result is stored whole: writes, reductions, and results that would otherwise be
  // computed repeatedly because their readers run over more points or read other elements. A view
  // is stored only if another view reads it.
  bool IsStored(NodeId id) const {
    const Op op = program_.nodes[id].op;
    if (op == Op::kRead || op == Op::kConstant) return false;
    if (op == Op::kWrite || Reduces(id)) return true;
    for (const NodeId consumer : facts_->nodes[id].consumers) {
      if (program_.nodes[consumer].op == Op::kView) return true;
      if (op != Op::kView && facts_->nodes[consumer].iteration != facts_->nodes[id].dims)
        return true;
    }
    return false;
  }

  // The dimension along which the lanes lie: the result's innermost, so that results are stored
  // side by side; for a full reduction, the last one it runs over.
  std::optional<DimId> LaneDim(NodeId id) const {
    if (!program_.nodes[id].dims.empty()) return program_.nodes[id].dims.back();
    std::optional<DimId> lane;
    for (DimId dim = 0; dim < program_.dims.size(); ++dim) {
      if (facts_->nodes[id].reduced.Has(dim)) lane = dim;
    }
    return lane;
  }

  void Store(NodeId id) {
    Stored& stored = stored_[id];
    stored.values.resize(static_cast<std::size_t>(program_.ElementCount(id)));
    if (!ranges_[id].exact) stored.errors.resize(stored.values.size());
    Piece piece(*this, id, LaneDim(id));
    piece.Run(stored);
  }

  // Evaluates one stored node.
  class Piece {
   public:
    Piece(const Evaluator& evaluator, NodeId root, std::optional<DimId> lane_dim)
        : evaluator_(evaluator), root_(root), lane_dim_(lane_dim) {
      const Program& program = evaluator.program_;
      if (program.nodes[root].op == Op::kView) {
        AddLoad(root, evaluator.LoadOf(root, lane_dim));
      } else {
        for (const NodeId input : program.nodes[root].inputs) Plan(input);
      }
      operations_ = evaluator.ReducedPoints(root) * static_cast<double>(std::max<std::size_t>(
                                                        1, program.nodes[root].inputs.size()));
      const double share = operations_ * kRounding;
      rounding_share_ = share < 1 ? share / (1 - share) : kInfinity;
      lanes_.resize(program.nodes.size());
      for (const PieceStep& step : steps_) lanes_[step.node] = std::make_unique<Lanes>();
      for (const DimId dim : program.nodes[root].dims) {
        if (dim != lane_dim) kept_.push_back(dim);
      }
      for (DimId dim = 0; dim < program.dims.size(); ++dim) {
        if (evaluator.facts_->nodes[root].reduced.Has(dim) && dim != lane_dim)
          reduced_.push_back(dim);
      }
      products_ = FindProducts();
      // A view has its own load as operand.
      operands_ = program.nodes[root].op == Op::kView ? std::vector<NodeId>{root}
                                                      : program.nodes[root].inputs;
    }

    void Run(Stored& stored) {
      const std::int64_t lane_size = lane_dim_ ? evaluator_.program_.dims[*lane_dim_].size : 1;
      const bool folds_lanes = lane_dim_ && evaluator_.facts_->nodes[root_].reduced.Has(*lane_dim_);
      std::size_t row = 0;
      do {
        Reset();
        for (std::int64_t lane = 0; lane < lane_size; lane += static_cast<std::int64_t>(kLanes)) {
          count_ = static_cast<std::size_t>(
              std::min(lane_size - lane, static_cast<std::int64_t>(kLanes)));
          if (lane_dim_) index_[*lane_dim_] = lane;
          if (!folds_lanes) Reset();
          do {
            if (products_) {
              AddProductsHere();
            } else {
              for (const PieceStep& step : steps_) Compute(step);
              Combine();
            }
          } while (Advance(reduced_));
          if (!folds_lanes) Keep(stored, row + static_cast<std::size_t>(lane), count_);
        }
        if (folds_lanes) {
          FoldLanes();
          Keep(stored, row, 1);
        }
        row += folds_lanes ? 1 : static_cast<std::size_t>(lane_size);
      } while (Advance(kept_));
    }

   private:
    // A sum of products of two inputs: one the same for all lanes, one contiguous over the lanes.
    // Either nothing rounds, or products and sum do.
    struct Products {
      Load factor;
      Load row;
    };

    std::optional<Products> FindProducts() const {
      const Program& program = evaluator_.program_;
      const Node& root = program.nodes[root_];
      if (root.op != Op::kAdd || !evaluator_.Reduces(root_) || root.inputs.size() != 1 ||
          steps_.size() != 3) {
        return std::nullopt;
      }
      const Node& operand = program.nodes[root.inputs[0]];
      if (operand.op != Op::kMultiply || operand.inputs.size() != 2) return std::nullopt;
      if (Exact(root_) != Exact(root.inputs[0])) return std::nullopt;
      const auto reads_input = [&](const PieceStep& step) {
        return step.load && step.load->guarded.empty() &&
               program.nodes[step.load->source].op == Op::kRead;
      };
      if (!reads_input(steps_[0]) || !reads_input(steps_[1])) return std::nullopt;
      for (const std::size_t factor : {0, 1}) {
        Products products{.factor = *steps_[factor].load, .row = *steps_[1 - factor].load};
        if (products.factor.lane_step == 0 && products.row.lane_step == 1) return products;
      }
      return std::nullopt;
    }

    void AddProductsHere() {
      const std::span<const float> factors = evaluator_.inputs_[products_->factor.source];
      const std::span<const float> rows = evaluator_.inputs_[products_->row.source];
      const double factor = factors[static_cast<std::size_t>(products_->factor.At(index_))];
      const float* const row = rows.data() + products_->row.At(index_);
      if (Exact(root_)) {
        AddProducts(factor, row, count_, result_.values);
      } else {
        AddRoundedProducts(factor, row, rounding_share_, count_, result_);
      }
    }

    void Plan(NodeId id) {
      for (const PieceStep& step : steps_) {
        if (step.node == id) return;
      }
      const Node& node = evaluator_.program_.nodes[id];
      const bool loads = node.op == Op::kRead || node.op == Op::kView || node.op == Op::kConstant ||
                         evaluator_.IsStored(id);
      if (loads) {
        AddLoad(id, evaluator_.LoadOf(id, lane_dim_));
        return;
      }
      for (const NodeId input : node.inputs) Plan(input);
      steps_.push_back({id, std::nullopt});
    }

    void AddLoad(NodeId id, Load load) { steps_.push_back({id, std::move(load)}); }

    // Advances the index, the last of `dims` fastest. False once all points are done.
    bool Advance(const std::vector<DimId>& dims) {
      for (std::size_t i = dims.size(); i-- > 0;) {
        if (++index_[dims[i]] < evaluator_.program_.dims[dims[i]].size) return true;
        index_[dims[i]] = 0;
      }
      return false;
    }

    bool Exact(NodeId id) const { return evaluator_.ranges_[id].exact; }

    void Compute(const PieceStep& step) {
      Lanes& result = *lanes_[step.node];
      if (step.load) {
        Fetch(step.node, *step.load, result);
        return;
      }
      const Node& node = evaluator_.program_.nodes[step.node];
      Apply(node.op, node.inputs, {result, Exact(step.node), count_});
    }

    void Fetch(NodeId id, const Load& load, Lanes& result) const {
      const Node& source = evaluator_.program_.nodes[load.source];
      if (!load.guarded.empty()) return FetchGuarded(id, load, result);
      if (source.op == Op::kConstant) {
        result.values.fill(static_cast<float>(source.constant));
        return;
      }
      const auto at = static_cast<std::size_t>(load.At(index_));
      const auto step = static_cast<std::size_t>(load.lane_step);
      if (source.op == Op::kRead) {
        Gather(evaluator_.inputs_[load.source].data() + at, step, count_, result.values);
        return;
      }
      const Stored& stored = evaluator_.stored_[load.source];
      Gather(stored.values.data() + at, step, count_, result.values);
      if (!Exact(id)) Gather(stored.errors.data() + at, step, count_, result.errors);
    }

    void FetchGuarded(NodeId id, const Load& load, Lanes& result) const {
      const Node& source = evaluator_.program_.nodes[load.source];
      const std::span<const float> input = evaluator_.inputs_[load.source];
      const Stored& stored = evaluator_.stored_[load.source];
      const auto value = [&](std::size_t at) -> double {
        if (source.op == Op::kConstant) return static_cast<float>(source.constant);
        return source.op == Op::kRead ? input[at] : stored.values[at];
      };
      const bool exact = Exact(id);
      for (std::size_t i = 0; i < count_; ++i) {
        const auto at = load.GuardedAt(index_, static_cast<std::int64_t>(i));
        result.values[i] = at ? value(*at) : static_cast<float>(load.outside);
        if (!exact) result.errors[i] = at && !stored.errors.empty() ? stored.errors[*at] : 0;
      }
    }

    Operand OperandOf(NodeId id) const { return {*lanes_[id], Exact(id)}; }

    // result = op(inputs...), lane by lane.
    void Apply(Op op, const std::vector<NodeId>& inputs, LaneResult result) const {
      if (inputs.size() == 1) return ApplyUnary(op, OperandOf(inputs[0]), result);
      if (op == Op::kSelect) {
        return ApplySelect(OperandOf(inputs[0]), OperandOf(inputs[1]), OperandOf(inputs[2]),
                           result);
      }
      ApplyBinary(op, OperandOf(inputs[0]), OperandOf(inputs[1]), result);
      for (std::size_t i = 2; i < inputs.size(); ++i) {
        ApplyBinary(op, {result.lanes, result.exact}, OperandOf(inputs[i]), result);
      }
    }

    void Reset() {
      const Op op = evaluator_.program_.nodes[root_].op;
      result_.values.fill(evaluator_.Reduces(root_) ? Identity<double>(op) : 0.0);
      // A product accumulates the product of magnitudes plus errors.
      result_.errors.fill(op == Op::kMultiply && evaluator_.Reduces(root_) ? 1.0 : 0.0);
    }

    // Combines the operands at the current point into the result.
    void Combine() {
      const Node& root = evaluator_.program_.nodes[root_];
      const LaneResult result{result_, Exact(root_), count_};
      if (!evaluator_.Reduces(root_)) return Apply(root.op, operands_, result);
      for (const NodeId operand : operands_) {
        Accumulate(root.op, OperandOf(operand), rounding_share_, result);
      }
    }

    // Reduces the lanes of a full reduction to its one element.
    void FoldLanes() {
      const Op op = evaluator_.program_.nodes[root_].op;
      const std::size_t used = std::min(kLanes, LaneCount());
      for (std::size_t i = 1; i < used; ++i) {
        result_.values[0] = Binary(op, result_.values[0], result_.values[i]);
        result_.errors[0] =
            Binary(op == Op::kMin ? Op::kMax : op, result_.errors[0], result_.errors[i]);
      }
    }

    std::size_t LaneCount() const {
      return static_cast<std::size_t>(evaluator_.program_.dims[*lane_dim_].size);
    }

    void Keep(Stored& stored, std::size_t at, std::size_t count) {
      std::copy_n(result_.values.begin(), count,
                  stored.values.begin() + static_cast<std::ptrdiff_t>(at));
      if (stored.errors.empty()) return;
      for (std::size_t i = 0; i < count; ++i) stored.errors[at + i] = FinalError(i);
    }

    double FinalError(std::size_t lane) const {
      double error = result_.errors[lane];
      if (evaluator_.Reduces(root_)) {
        if (evaluator_.program_.nodes[root_].op == Op::kMultiply) {
          error = error * std::exp(operations_ * kRounding) - std::abs(result_.values[lane]);
        }
        error += operations_ * kSmallestNormal;
      }
      const double largest = std::abs(result_.values[lane]) + error;
      return largest <= std::numeric_limits<float>::max() ? error : kInfinity;  // infinite for NaN
    }

    const Evaluator& evaluator_;
    NodeId root_;
    std::optional<DimId> lane_dim_;
    std::vector<PieceStep> steps_;                // producers first
    std::optional<Products> products_;            // set if this is all there is to compute
    std::vector<NodeId> operands_;                // of the root
    std::vector<std::unique_ptr<Lanes>> lanes_;   // per program node that is a step
    std::vector<DimId> kept_;                     // dims of the result, without the lane dim
    std::vector<DimId> reduced_;                  // reduced dims, without the lane dim
    std::array<std::int64_t, kMaxDims> index_{};  // of the first lane
    std::size_t count_ = 0;                       // lanes in use
    Lanes result_;
    double operations_ = 1;      // of a reduction, per element of the result
    double rounding_share_ = 0;  // n roundings of a sum, relative to the sum of magnitudes
  };

  Load::Guarded GuardedDim(const IndexGuard& guard, std::optional<DimId> lane_dim,
                           std::int64_t stride) const {
    Load::Guarded dim{
        .constant = guard.constant, .divisor = guard.divisor, .size = guard.size, .stride = stride};
    for (const AffineTerm& term : guard.terms) {
      if (program_.dims[term.dim].size == 1) continue;
      dim.terms.push_back(term);
      if (lane_dim == term.dim) dim.lane_step += term.coefficient;
    }
    return dim;
  }

  // At most one view is folded, so all guards have its `outside`.
  Load LoadOf(NodeId id, std::optional<DimId> lane_dim) const {
    const Access access = AccessOf(program_, id, [&](NodeId node) {
      return node == id || !IsStored(node);  // views that another view reads are stored
    });
    Load load{.source = access.source};
    if (!access.guards.empty()) load.outside = access.guards.front().outside;
    std::int64_t stride = 1;
    const auto& dims = program_.nodes[access.source].dims;
    for (std::size_t i = dims.size(); i-- > 0;) {
      const auto guard = std::ranges::find_if(
          access.guards, [&](const IndexGuard& candidate) { return candidate.dim == dims[i]; });
      if (guard != access.guards.end()) {
        load.guarded.push_back(GuardedDim(*guard, lane_dim, stride));
        stride *= program_.dims[dims[i]].size;
        continue;
      }
      load.constant += access.index[i].constant * stride;
      for (const AffineTerm& term : access.index[i].terms) {
        if (program_.dims[term.dim].size == 1) continue;
        load.terms.push_back({term.dim, term.coefficient * stride});
        if (lane_dim == term.dim) load.lane_step += term.coefficient * stride;
      }
      stride *= program_.dims[dims[i]].size;
    }
    return load;
  }

  const Program& program_;
  std::vector<std::span<const float>> inputs_;  // per program node that is a read
  std::shared_ptr<const ProgramFacts> facts_;
  std::vector<Stored> stored_;      // per program node that is stored
  std::vector<ValueRange> ranges_;  // per program node
};

}  // namespace

Reference Evaluate(const Program& program, std::span<const Tensor> inputs) {
  return Evaluator(program, inputs).Run();
}

}  // namespace loopfleet::looptree
