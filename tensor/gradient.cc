#include "tensor/gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <unordered_map>
#include <utility>

#include "tensor/shape_solver.h"
#include "tensor/view_adjoint.h"

namespace loopfleet::tensor {
namespace {

using looptree::Op;

[[noreturn]] void Throw(const std::string& message) {
  throw TensorError(TensorError::Kind::kGradient, message);
}

Tensor Number(double value) { return Tensor::Constant(value); }
bool IsConstant(const Tensor& tensor) { return tensor.node()->kind == Node::Kind::kConstant; }
bool IsOne(const Tensor& tensor) { return IsConstant(tensor) && tensor.node()->value == 1; }

// A number with another value, folded into kernels as it is.
Tensor WithValue(const Node& number, double value) {
  NodePtr made = MakeNode(number.kind, number.inputs, {});
  made->op = number.op;
  made->index = number.index;
  made->value = value;
  return Tensor(std::move(made));
}

Tensor Times(const Tensor& a, const Tensor& b) {
  if (IsOne(a)) return b;
  for (const auto& [factor, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (!IsConstant(*factor) || !IsNumber(*other->node())) continue;
    return WithValue(*other->node(), factor->node()->value * other->node()->value);
  }
  return a * b;
}

// Multiplied or divided (`op`) by how many elements `node` has along `dims`.
Tensor ByCount(Op op, const Tensor& a, const NodePtr& node, const std::vector<Symbol>& dims) {
  NodePtr made = MakeNode(Node::Kind::kCount, {node}, {});
  for (const Symbol& dim : dims) made->index.emplace_back(dim);
  made->op = op;
  made->value = IsConstant(a) ? a.node()->value : 1;
  const Tensor count(std::move(made));
  return IsConstant(a) ? count : a * count;
}

Tensor Negated(const Tensor& a) { return IsNumber(*a.node()) ? Times(Number(-1), a) : -a; }

bool HasAllDims(const Tensor& tensor, const Node& like) {
  return tensor.ndim() == like.symbols.size();
}

// Repeated along the dims of `like` that it lacks, with the sizes of `like`.
Tensor SpreadLike(const Tensor& tensor, const NodePtr& like) {
  const Tensor input = tensor.Readable();
  NodePtr node = MakeNode(Node::Kind::kView, {input.node(), like}, like->symbols);
  for (const Symbol& symbol : input.symbolic_shape()) node->index.emplace_back(symbol);
  return Tensor(std::move(node));
}

Tensor Ordered(const Tensor& tensor, const std::vector<Symbol>& symbols) {
  return tensor.symbolic_shape() == symbols ? tensor : tensor.transpose(symbols);
}

std::vector<Symbol> Without(const std::vector<Symbol>& symbols, const std::vector<Symbol>& others) {
  std::vector<Symbol> rest;
  for (const Symbol& symbol : symbols) {
    if (AxisOf(others, symbol) < 0) rest.push_back(symbol);
  }
  return rest;
}

// Walks a graph from its root, and gives each node's adjoint, once complete, to its inputs. An
// adjoint that lacks dims of its node is the same along them.
class Reverse {
 public:
  Reverse(const Tensor& loss, const std::vector<Tensor>& of, bool allow_division)
      : loss_(loss), of_(of), allow_division_(allow_division), nodes_(InOrder(*loss.node())) {
    states_[loss.node().get()].node = loss.node();
    {
      const ShapeSolver solver(nodes_);
      for (const Node* const node : nodes_) states_[node].sizes = solver.ShapeOf(*node);
    }
    for (const Node* const node : nodes_) {
      for (const NodePtr& input : node->inputs) states_[input.get()].node = input;
    }
    for (const Tensor& tensor : of) FindTarget(tensor);
    for (const Node* const node : nodes_) {
      for (const NodePtr& input : OperandsOf(*node)) {
        states_.at(node).is_wanted |= states_.at(input.get()).is_wanted;
      }
    }
    if (!of.empty() && !Wants(loss.node())) Refuse(of[0]);  // it has the sizes, not the elements
  }

  std::vector<Tensor> Run(const Tensor& seed) {
    states_.at(loss_.node().get()).adjoint = seed;
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      const State& state = states_.at(nodes_[i]);
      if (state.is_wanted && state.adjoint) Visit(state.node, *state.adjoint);
    }
    std::vector<Tensor> gradients;
    for (const Tensor& tensor : of_) gradients.push_back(GradientOf(tensor.node()));
    return gradients;
  }

 private:
  struct State {
    NodePtr node;
    std::vector<std::int64_t> sizes;  // 0: unknown
    bool is_wanted = false;           // one of `of` is among what it is computed from, or it itself
    std::optional<Tensor> adjoint;    // the sum so far
  };

  [[noreturn]] void Refuse(const Tensor& tensor) const {
    Throw(
        fmt::format("{} does not depend on {}", Describe(*loss_.node()), Describe(*tensor.node())));
  }

  void FindTarget(const Tensor& tensor) {
    const auto state = states_.find(tensor.node().get());
    if (state == states_.end() || IsNumber(*tensor.node())) Refuse(tensor);
    state->second.is_wanted = true;
  }

  Tensor GradientOf(const NodePtr& node) const {
    const Tensor adjoint = states_.at(node.get()).adjoint.value_or(Number(0));
    const Tensor ordered = Ordered(Whole(node, adjoint), node->symbols);
    // It may read tensors whose sizes follow from other parts of the loss.
    return Tensor(
        MakeNode(Node::Kind::kRename, {ordered.node(), node, loss_.node()}, node->symbols));
  }

  bool Wants(const NodePtr& input) const { return states_.at(input.get()).is_wanted; }

  void Add(const NodePtr& input, const Tensor& contribution) {
    std::optional<Tensor>& adjoint = states_.at(input.get()).adjoint;
    adjoint = adjoint ? *adjoint + contribution : contribution;
  }

  void Visit(const NodePtr& node, const Tensor& g) {
    if (std::ranges::none_of(OperandsOf(*node),
                             [&](const NodePtr& input) { return Wants(input); })) {
      return;
    }
    const NodePtr& input = node->inputs[0];
    switch (node->kind) {
      case Node::Kind::kLeaf:
      case Node::Kind::kConstant:
      case Node::Kind::kCount: return;
      case Node::Kind::kPointwise: VisitPointwise(node, g); return;
      case Node::Kind::kReduce: Add(input, OfReduction(node, g)); return;
      case Node::Kind::kMean:
        Add(input, ByCount(Op::kDivide, g, input, Without(input->symbols, node->symbols)));
        return;
      case Node::Kind::kRename: Add(input, Renamed(g, node->symbols, input->symbols)); return;
      case Node::Kind::kTranspose: Add(input, g); return;
      case Node::Kind::kView:
        Add(input, ViewAdjoint(*node, Whole(node, g), states_.at(node.get()).sizes));
        return;
      case Node::Kind::kConcat: VisitConcat(node, Whole(node, g)); return;
      case Node::Kind::kReshape: {
        const Tensor whole = Ordered(Whole(node, g), node->symbols);
        NodePtr back = MakeNode(Node::Kind::kReshape, {whole.node(), input}, input->symbols);
        back->axis = node->axis;
        back->count = node->new_count;
        back->new_count = node->count;
        Add(input, Tensor(std::move(back)));
        return;
      }
    }
  }

  // With all dims of `node`.
  static Tensor Whole(const NodePtr& node, const Tensor& g) {
    return HasAllDims(g, *node) ? g.Readable() : SpreadLike(g, node);
  }

  // Each part of the whole, at its place along the axis.
  void VisitConcat(const NodePtr& node, const Tensor& g) {
    const Symbol& whole = node->symbols[node->axis];
    for (const NodePtr& input : node->inputs) {
      if (!Wants(input)) continue;
      const Symbol& mine = input->symbols[node->axis];
      NodePtr part = MakeNode(Node::Kind::kView, {g.node(), input}, input->symbols);
      for (const Symbol& symbol : g.symbolic_shape()) {
        const bool is_last = input == node->inputs[1];
        const Expr start = is_last ? Size(whole) - Size(mine) : Expr(0);
        part->index.push_back(symbol == whole ? start + Expr(mine) : Expr(symbol));
      }
      Add(input, Tensor(std::move(part)));
    }
  }

  Tensor OfReduction(const NodePtr& node, const Tensor& g) const {
    const Tensor x(node->inputs[0]), y(node);
    const std::vector<Symbol> over = Without(x.symbolic_shape(), node->symbols);
    switch (node->op) {
      case Op::kAdd: return g;
      case Op::kMultiply:
        if (!allow_division_) {
          Throw(
              fmt::format("{}: its gradient divides the product by each factor, which is wrong "
                          "where one is 0; allow_division allows it",
                          Describe(*node)));
        }
        return Times(g, y) / x;
      default: {
        const Tensor is_extreme = x.Binary(Op::kEqual, y);
        return Tensor::Where(is_extreme, g / is_extreme.sum(over), Number(0));
      }
    }
  }

  // `contribution`, which may have any dims of `node`, summed over those that the input lacks.
  void Give(const NodePtr& node, const NodePtr& input, Tensor contribution) {
    const std::vector<Symbol> extra = Without(node->symbols, input->symbols);
    const std::vector<Symbol> missing = Without(extra, contribution.symbolic_shape());
    const std::vector<Symbol> present = Without(extra, missing);
    if (!present.empty()) contribution = contribution.sum(present);
    if (!missing.empty()) contribution = ByCount(Op::kMultiply, contribution, node, missing);
    Add(input, contribution);
  }

  void VisitPointwise(const NodePtr& node, const Tensor& g) {
    if (node->op == Op::kMultiply && node->inputs[0] == node->inputs[1]) {
      Give(node, node->inputs[0], Times(Times(Number(2), g), Tensor(node->inputs[0])));
      return;
    }
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      if (!Wants(node->inputs[i])) continue;
      const std::optional<Tensor> contribution = node->inputs.size() == 1 ? OfUnary(node, g)
                                                 : node->inputs.size() == 2
                                                     ? OfBinary(node, g, i == 0)
                                                     : OfSelect(node, g, i);
      if (contribution) Give(node, node->inputs[i], *contribution);
    }
  }

  // nullopt: 0.
  static std::optional<Tensor> OfUnary(const NodePtr& node, const Tensor& g) {
    const Tensor x(node->inputs[0]), y(node);
    switch (node->op) {
      case Op::kNegate: return Negated(g);
      case Op::kReciprocal: return Negated(Times(g, y * y));
      case Op::kExp: return Times(g, y);
      case Op::kLog: return g / x;
      case Op::kSqrt: return Times(g, Number(0.5)) / y;
      case Op::kAbs: return Times(g, x.Unary(Op::kSign));
      case Op::kTanh: return Times(g, Number(1) - y * y);
      case Op::kErf: return Times(g, Number(2 * std::numbers::inv_sqrtpi) * (-(x * x)).exp());
      case Op::kSin: return Times(g, x.Unary(Op::kCos));
      case Op::kCos: return Negated(Times(g, x.Unary(Op::kSin)));
      case Op::kFloor:
      case Op::kCeil:
      case Op::kRound:
      case Op::kSign: return std::nullopt;
      default: Throw(fmt::format("{} has no gradient", Describe(*node)));
    }
  }

  static std::optional<Tensor> OfBinary(const NodePtr& node, const Tensor& g, bool of_first) {
    const Tensor a(node->inputs[0]), b(node->inputs[1]), y(node);
    switch (node->op) {
      case Op::kAdd: return g;
      case Op::kSubtract: return of_first ? g : Negated(g);
      case Op::kMultiply: return Times(g, of_first ? b : a);
      case Op::kDivide: return of_first ? g / b : Negated(Times(g, y) / b);
      case Op::kPower: return Times(g, of_first ? SlopeOfBase(a, b) : SlopeOfExponent(a, y));
      case Op::kMax: return Times(g, of_first ? ShareOfGreater(a, b) : ShareOfGreater(b, a));
      case Op::kMin: return Times(g, of_first ? ShareOfGreater(b, a) : ShareOfGreater(a, b));
      case Op::kGreater:
      case Op::kGreaterEqual:
      case Op::kEqual: return std::nullopt;
      default: Throw(fmt::format("{} has no gradient", Describe(*node)));
    }
  }

  // b * a ** (b - 1).
  static Tensor SlopeOfBase(const Tensor& a, const Tensor& b) {
    if (!IsConstant(b)) return Tensor::Where(b, b * a.Binary(Op::kPower, b - Number(1)), Number(0));
    const double exponent = b.node()->value;
    if (exponent == 0) return Number(0);  // 0 * a ** -1 is none where a is 0
    if (exponent == 1) return Number(1);
    if (exponent == 2) return Number(2) * a;
    return Number(exponent) * a.Binary(Op::kPower, Number(exponent - 1));
  }

  // y * log(a); 0 where a is 0, as y is for exponents around it.
  static Tensor SlopeOfExponent(const Tensor& a, const Tensor& y) {
    if (IsConstant(a) && a.node()->value > 0) return Times(Number(std::log(a.node()->value)), y);
    return Tensor::Where(a, y * a.log(), Number(0));
  }

  // 1 where `a` is the greater one, 1/2 where both are equal, else 0.
  static Tensor ShareOfGreater(const Tensor& a, const Tensor& b) {
    return (a.Binary(Op::kGreater, b) + a.Binary(Op::kGreaterEqual, b)) * Number(0.5);
  }

  static std::optional<Tensor> OfSelect(const NodePtr& node, const Tensor& g, std::size_t input) {
    const Tensor condition(node->inputs[0]);
    if (input == 0) return std::nullopt;
    return input == 1 ? Tensor::Where(condition, g, Number(0))
                      : Tensor::Where(condition, Number(0), g);
  }

  const Tensor& loss_;
  const std::vector<Tensor>& of_;
  const bool allow_division_;
  const std::vector<Node*> nodes_;
  std::unordered_map<const Node*, State> states_;
};

Tensor SeedOf(const Tensor& loss, const GradientOptions& options) {
  const std::vector<Symbol>& dims = loss.symbolic_shape();
  if (!options.seed) {
    if (dims.empty()) return Number(1);
    Throw(fmt::format("the loss {} has dims [{}]: sum it, or give a seed with these dims",
                      Describe(*loss.node()), Join(dims)));
  }
  const std::vector<Symbol> foreign = Without(options.seed->symbolic_shape(), dims);
  if (!foreign.empty()) {
    Throw(fmt::format("the seed has dims [{}], but the loss {} has [{}]",
                      Join(options.seed->symbolic_shape()), Describe(*loss.node()), Join(dims)));
  }
  return dims.empty() ? *options.seed : SpreadLike(*options.seed, loss.node());
}

}  // namespace

std::vector<Tensor> Grad(const Tensor& loss, const std::vector<Tensor>& of,
                         const GradientOptions& options) {
  const Tensor seed = SeedOf(loss, options);
  return Reverse(loss, of, options.allow_division).Run(seed);
}

}  // namespace loopfleet::tensor
