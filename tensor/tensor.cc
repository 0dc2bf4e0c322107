#include "tensor/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "common/base/check.h"
#include "common/looptree/text/text.h"
#include "tensor/shape_solver.h"

namespace loopfleet::tensor {
namespace {

using Kind = TensorError::Kind;
using looptree::Op;

[[noreturn]] void Throw(Kind kind, const std::string& message) { throw TensorError(kind, message); }

std::string ShapeText(const Tensor::Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void CheckDistinct(const std::vector<Symbol>& symbols, const char* what) {
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (std::ranges::count(symbols, symbols[i]) > 1) {
      Throw(Kind::kShape, fmt::format("{}: {} names two dims", what, symbols[i].name()));
    }
  }
}

constexpr std::int64_t kMostElements = std::int64_t{1} << 38;

std::size_t CheckedCount(const Tensor::Shape& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    if (size < 1) {
      Throw(Kind::kShape, fmt::format("shape {}: sizes are at least 1", ShapeText(sizes)));
    }
    if (__builtin_mul_overflow(count, size, &count) || count > kMostElements) {
      Throw(Kind::kShape,
            fmt::format("shape {}: at most {} elements", ShapeText(sizes), kMostElements));
    }
  }
  return static_cast<std::size_t>(count);
}

void CheckCount(const Tensor::Shape& sizes, const Buffer& values) {
  const std::size_t count = CheckedCount(sizes);
  LF_CHECK(values.count() == count, "{} values for shape {}", values.count(), ShapeText(sizes));
}

std::vector<Symbol> FreshSymbols(std::size_t count) {
  std::vector<Symbol> symbols;
  for (std::size_t i = 0; i < count; ++i) symbols.push_back(Symbol::Fresh());
  return symbols;
}

// Their list, each copied once: a list of initial values would be copied again.
template <class... Input>
std::vector<NodePtr> Inputs(Input&&... inputs) {
  std::vector<NodePtr> list;
  list.reserve(sizeof...(inputs));
  (list.push_back(std::forward<Input>(inputs)), ...);
  return list;
}

// The axis of a symbol that must be there.
std::size_t AxisIn(const Node& node, const Symbol& symbol, const char* what) {
  const int axis = AxisOf(node.symbols, symbol);
  if (axis >= 0) return static_cast<std::size_t>(axis);
  const bool has_namesake = std::ranges::any_of(
      node.symbols, [&](const Symbol& other) { return other.name() == symbol.name(); });
  Throw(Kind::kShape,
        fmt::format(
            "{} over {}: {} has no such dim, it has [{}]{}", what, symbol.name(), Describe(node),
            Join(node.symbols),
            has_namesake ? "; its symbol of this name is another one: use the same object" : ""));
}

void CheckLeaf(const Node& node, const char* what) {
  if (node.kind == Node::Kind::kLeaf) return;
  Throw(Kind::kTensor, fmt::format("{} of {}: only leaves, made by Tensor(...), can be set", what,
                                   Describe(node)));
}

// What an equation of a view says about one dim of its input.
struct Solved {
  std::size_t axis = 0;
  Expr index = 0;
};

std::string EquationText(const Tensor::Constraint& equation) {
  return fmt::format("{} = {}", equation.first.ToString(), equation.second.ToString());
}

[[noreturn]] void ThrowView(const Tensor::Constraint& equation, const std::string& why) {
  Throw(Kind::kView, fmt::format("{}: {}", EquationText(equation), why));
}

bool IsOneSize(const Expr& expr) {
  return expr.terms().size() == 1 && expr.terms()[0].is_size && expr.terms()[0].coefficient == 1 &&
         expr.constant() == 0 && expr.divisor() == 1;
}

// nullopt: it says nothing of the input, which has rank 0.
std::optional<Solved> Solve(const Tensor::Constraint& equation, const Node& input,
                            const std::vector<Symbol>& symbols) {
  const Expr& left = equation.first;
  const Expr& right = equation.second;
  if (left.divisor() != 1 && right.divisor() != 1 && left.divisor() != right.divisor()) {
    ThrowView(equation, "it has two quotients");
  }
  // A quotient is only understood as the index itself: x = (...) // n.
  const auto is_input = [&](const Expr& side) {
    return side.divisor() == 1 && side.constant() == 0 && side.terms().size() == 1 &&
           !side.terms()[0].is_size && side.terms()[0].coefficient == 1 &&
           AxisOf(input.symbols, side.terms()[0].symbol) >= 0 &&
           AxisOf(symbols, side.terms()[0].symbol) < 0;
  };
  for (const auto& [input_side, other] : {std::pair(&left, &right), std::pair(&right, &left)}) {
    if (other->divisor() != 1) {
      if (!is_input(*input_side)) ThrowView(equation, "a quotient must be the index of one dim");
      return Solved{
          .axis = static_cast<std::size_t>(AxisOf(input.symbols, input_side->terms()[0].symbol)),
          .index = *other};
    }
  }
  const Expr zero = left - right;
  if (!zero.problem().empty()) ThrowView(equation, zero.problem());
  std::optional<Expr::Term> unknown;
  for (const Expr::Term& term : zero.terms()) {
    if (term.is_size || AxisOf(symbols, term.symbol) >= 0) continue;
    if (AxisOf(input.symbols, term.symbol) < 0) {
      ThrowView(equation, fmt::format("{} is a dim of neither the input [{}] nor the view [{}]",
                                      term.symbol.name(), Join(input.symbols), Join(symbols)));
    }
    if (unknown) {
      ThrowView(equation, fmt::format("it has two dims of the input, {} and {}",
                                      unknown->symbol.name(), term.symbol.name()));
    }
    unknown = term;
  }
  if (!unknown) {
    if (input.symbols.empty()) return std::nullopt;
    ThrowView(equation, fmt::format("it names no dim of the input [{}] that the view lacks",
                                    Join(input.symbols)));
  }
  // coefficient * x + rest = 0.
  Expr rest = zero - Expr(unknown->coefficient) * Expr(unknown->symbol);
  if (unknown->coefficient > 0) rest = -rest;
  const std::int64_t divisor = std::abs(unknown->coefficient);
  return Solved{.axis = static_cast<std::size_t>(AxisOf(input.symbols, unknown->symbol)),
                .index = divisor == 1 ? rest : rest.DividedBy(divisor)};
}

}  // namespace

Tensor Tensor::Readable() const {
  if (!IsNumber(*node_)) return *this;
  const bool is_count = node_->kind == Node::Kind::kCount;
  auto values = Buffer::Make(1);
  values->data()[0] = is_count ? 1 : static_cast<float>(node_->value);
  const Tensor leaf({}, std::move(values));
  return is_count ? leaf * *this : leaf;
}

const char* ErrorName(TensorError::Kind kind) {
  switch (kind) {
    case Kind::kSizeUnknown: return "SizeUnknown";
    case Kind::kSizeConflict: return "SizeConflict";
    case Kind::kShape: return "ShapeError";
    case Kind::kView: return "ViewError";
    case Kind::kDType: return "DTypeError";
    case Kind::kTensor: return "TensorError";
    case Kind::kSchedule: return "ScheduleError";
    case Kind::kKernel: return "KernelError";
    case Kind::kGradient: return "GradientError";
  }
  return "TensorError";
}

Tensor::Tensor(std::vector<Symbol> symbols) {
  CheckDistinct(symbols, "Tensor");
  const std::size_t rank = symbols.size();
  node_ = MakeNode(Node::Kind::kLeaf, {}, std::move(symbols));
  node_->bound.assign(rank, 0);
  node_->needs_context = rank > 0;
}

Tensor::Tensor(const Shape& sizes, std::shared_ptr<Buffer> values) {
  CheckCount(sizes, *values);
  node_ = MakeNode(Node::Kind::kLeaf, {}, FreshSymbols(sizes.size()));
  node_->bound = sizes;
  node_->has_fixed_sizes = true;
  node_->data = std::move(values);
  node_->version = NextVersion();
}

Tensor::Tensor(const Shape& sizes) : Tensor(sizes, Buffer::Zeros(CheckedCount(sizes))) {}

Tensor Tensor::Constant(double value) {
  NodePtr node = MakeNode(Node::Kind::kConstant, {}, {});
  node->value = static_cast<float>(value);
  return Tensor(std::move(node));
}

Tensor& Tensor::set(const Shape& sizes, std::shared_ptr<Buffer> values) {
  CheckLeaf(*node_, "set");
  if (sizes.size() != node_->symbols.size()) {
    Throw(Kind::kShape, fmt::format("set of {}: values of shape {}, but it has {} dims",
                                    Describe(*node_), ShapeText(sizes), node_->symbols.size()));
  }
  CheckCount(sizes, *values);
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const std::int64_t known = node_->has_fixed_sizes ? node_->bound[axis] : 0;
    if (known != 0 && known != sizes[axis]) {
      Throw(Kind::kSizeConflict,
            fmt::format("set of {}: values of shape {}, but {} has size {}", Describe(*node_),
                        ShapeText(sizes), node_->symbols[axis].name(), known));
    }
  }
  node_->bound = sizes;
  node_->data = std::move(values);
  node_->version = NextVersion();
  return *this;
}

Tensor& Tensor::set(std::span<const float> values) {
  const Shape sizes = shape();
  const std::size_t count = CheckedCount(sizes);
  if (count != values.size()) {
    Throw(Kind::kShape, fmt::format("set of {}: {} values for shape {}", Describe(*node_),
                                    values.size(), ShapeText(sizes)));
  }
  auto buffer = Buffer::Make(count);
  std::ranges::copy(values, buffer->data());
  return set(sizes, std::move(buffer));
}

Tensor& Tensor::fill(float value) {
  CheckLeaf(*node_, "set");
  const Shape sizes = shape();
  auto buffer = Buffer::Make(CheckedCount(sizes));
  std::fill_n(buffer->data(), buffer->count(), value);
  return set(sizes, std::move(buffer));
}

Tensor& Tensor::set_size(const Shape& sizes) {
  CheckLeaf(*node_, "set_size");
  if (sizes.size() != node_->symbols.size()) {
    Throw(Kind::kShape, fmt::format("set_size of {}: {} sizes for {} dims", Describe(*node_),
                                    sizes.size(), node_->symbols.size()));
  }
  CheckedCount(sizes);
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const bool is_bound = node_->data != nullptr || node_->has_fixed_sizes;
    if (is_bound && node_->bound[axis] != sizes[axis]) {
      Throw(Kind::kSizeConflict,
            fmt::format("set_size of {}: {} has size {}, not {}", Describe(*node_),
                        node_->symbols[axis].name(), node_->bound[axis], sizes[axis]));
    }
  }
  node_->bound = sizes;
  node_->has_fixed_sizes = true;
  return *this;
}

Tensor::Shape Tensor::shape() const {
  if (node_->kind == Node::Kind::kLeaf &&
      std::ranges::find(node_->bound, 0) == node_->bound.end()) {
    return node_->bound;
  }
  const std::vector<Node*> nodes = InOrder(*node_);
  {
    const ShapeSolver solver(nodes);
    if (solver.Knows(*node_)) return solver.ShapeOf(*node_);
  }
  std::vector<NodePtr> kept;
  const std::vector<Node*> all = WithConsumers(nodes, kept);
  const ShapeSolver solver(all);
  if (!solver.Knows(*node_)) solver.ThrowUnknown(*node_);
  return solver.ShapeOf(*node_);
}

std::int64_t Tensor::size() const { return static_cast<std::int64_t>(CheckedCount(shape())); }

const Tensor& Tensor::unify() const {
  const std::vector<Node*> nodes = InOrder(*node_);
  std::vector<NodePtr> kept;
  const std::vector<Node*> all = WithConsumers(nodes, kept);
  const ShapeSolver solver(all);
  for (const Node* const node : nodes) {
    if (!solver.Knows(*node)) solver.ThrowUnknown(*node);
  }
  return *this;
}

Tensor Tensor::Unary(Op op) const {
  NodePtr node = MakeNode(Node::Kind::kPointwise, Inputs(Readable().node_), node_->symbols);
  node->op = op;
  return Tensor(std::move(node));
}

Tensor Tensor::Binary(Op op, const Tensor& other) const {
  std::vector<Symbol> symbols;
  symbols.reserve(node_->symbols.size() + other.node_->symbols.size());
  symbols = node_->symbols;
  for (const Symbol& symbol : other.node_->symbols) {
    if (AxisOf(node_->symbols, symbol) < 0) symbols.push_back(symbol);
  }
  std::vector<NodePtr> inputs = IsNumber(*other.node_) && IsNumber(*node_)
                                    ? Inputs(Readable().node_, other.node_)
                                    : Inputs(node_, other.node_);
  NodePtr node = MakeNode(Node::Kind::kPointwise, std::move(inputs), std::move(symbols));
  node->op = op;
  return Tensor(std::move(node));
}

Tensor Tensor::Where(const Tensor& condition, const Tensor& yes, const Tensor& no) {
  std::vector<Symbol> symbols;
  for (const Tensor* const tensor : {&condition, &yes, &no}) {
    for (const Symbol& symbol : tensor->node_->symbols) {
      if (AxisOf(symbols, symbol) < 0) symbols.push_back(symbol);
    }
  }
  NodePtr node = MakeNode(Node::Kind::kPointwise, {condition.Readable().node_, yes.node_, no.node_},
                          std::move(symbols));
  node->op = Op::kSelect;
  return Tensor(std::move(node));
}

Tensor Tensor::Reduce(Op op, const std::vector<Symbol>& over) const {
  std::vector<Symbol> kept;
  kept.reserve(node_->symbols.size());
  if (!over.empty()) {
    for (const Symbol& symbol : over) AxisIn(*node_, symbol, "a reduction");
    for (const Symbol& symbol : node_->symbols) {
      if (AxisOf(over, symbol) < 0) kept.push_back(symbol);
    }
  }
  if (node_->symbols.empty()) return *this;  // nothing to reduce
  NodePtr node = MakeNode(Node::Kind::kReduce, Inputs(node_), std::move(kept));
  node->op = op;
  return Tensor(std::move(node));
}

Tensor Tensor::sum(const std::vector<Symbol>& over) const { return Reduce(Op::kAdd, over); }
Tensor Tensor::prod(const std::vector<Symbol>& over) const { return Reduce(Op::kMultiply, over); }
Tensor Tensor::max_reduce(const std::vector<Symbol>& over) const { return Reduce(Op::kMax, over); }
Tensor Tensor::min_reduce(const std::vector<Symbol>& over) const { return Reduce(Op::kMin, over); }

Tensor Tensor::mean(const std::vector<Symbol>& over) const {
  const Tensor sum = Reduce(Op::kAdd, over);
  if (sum.node_ == node_) return sum;
  return Tensor(MakeNode(Node::Kind::kMean, {node_}, sum.node_->symbols));
}

Tensor Tensor::to(std::vector<Symbol> symbols) const {
  if (symbols.size() != node_->symbols.size()) {
    Throw(Kind::kShape,
          fmt::format("to({}): {} symbols for the {} dims of {}; a view with other dims needs "
                      "constraints",
                      Join(symbols), symbols.size(), node_->symbols.size(), Describe(*node_)));
  }
  CheckDistinct(symbols, "to");
  return Tensor(MakeNode(Node::Kind::kRename, Inputs(node_), std::move(symbols)));
}

Tensor Tensor::to(const std::vector<Symbol>& symbols, const std::vector<Constraint>& constraints,
                  double outside) const {
  if (constraints.empty()) return to(symbols);
  CheckDistinct(symbols, "to");
  const Node& input = *node_;
  std::vector<std::optional<Expr>> index(input.symbols.size());
  std::vector<SizeEquation> sizes;
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    if (AxisOf(symbols, input.symbols[axis]) >= 0) index[axis] = Expr(input.symbols[axis]);
  }
  for (const Constraint& equation : constraints) {
    const auto& [left, right] = equation;
    for (const Expr* const side : {&left, &right}) {
      if (!side->problem().empty()) ThrowView(equation, side->problem());
    }
    if (IsOneSize(left) || IsOneSize(right)) {
      const Expr& size = IsOneSize(left) ? left : right;
      const Expr& other = IsOneSize(left) ? right : left;
      const bool has_index =
          std::ranges::any_of(other.terms(), [](const Expr::Term& term) { return !term.is_size; });
      if (has_index) ThrowView(equation, "a size cannot depend on an index");
      sizes.push_back({.symbol = size.terms()[0].symbol, .expr = other});
      continue;
    }
    if (const auto solved = Solve(equation, input, symbols)) {
      if (index[solved->axis]) {
        ThrowView(equation, fmt::format("the index along {} is given twice",
                                        input.symbols[solved->axis].name()));
      }
      index[solved->axis] = solved->index;
    }
  }
  NodePtr node = MakeNode(Node::Kind::kView, {node_}, symbols);
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    if (!index[axis]) {
      Throw(Kind::kView, fmt::format("to({}): no equation gives the index along {} of {}",
                                     Join(symbols), input.symbols[axis].name(), Describe(input)));
    }
    node->index.push_back(*index[axis]);
  }
  node->sizes = std::move(sizes);
  for (const SizeEquation& equation : node->sizes) {
    std::vector<Symbol> named = {equation.symbol};
    for (const Expr::Term& term : equation.expr.terms()) named.push_back(term.symbol);
    for (const Symbol& symbol : named) {
      if (AxisOf(symbols, symbol) >= 0 || AxisOf(input.symbols, symbol) >= 0) continue;
      Throw(Kind::kView, fmt::format("Size({}) = {}: {} is a dim of neither the input [{}] nor the "
                                     "view [{}]",
                                     equation.symbol.name(), equation.expr.ToString(),
                                     symbol.name(), Join(input.symbols), Join(symbols)));
    }
  }
  node->value = outside;
  return Tensor(std::move(node));
}

Tensor Tensor::operator[](const Index& index) const {
  const Node& input = *node_;
  if (index.exprs.size() != input.symbols.size()) {
    Throw(Kind::kShape, fmt::format("{} indices for the {} dims of {}", index.exprs.size(),
                                    input.symbols.size(), Describe(input)));
  }
  std::vector<Symbol> symbols;
  std::vector<Expr> exprs;
  for (std::size_t axis = 0; axis < index.exprs.size(); ++axis) {
    Expr expr = index.exprs[axis];
    if (!expr.problem().empty()) Throw(Kind::kView, expr.problem());
    // Counted from the end.
    if (expr.is_constant() && expr.constant() < 0) expr = Size(input.symbols[axis]) + expr;
    for (const Expr::Term& term : expr.terms()) {
      if (term.is_size) {
        if (AxisOf(input.symbols, term.symbol) >= 0) continue;
        Throw(Kind::kView, fmt::format("index {}: {} is no dim of {}", expr.ToString(),
                                       term.symbol.name(), Describe(input)));
      }
      if (AxisOf(symbols, term.symbol) < 0) symbols.push_back(term.symbol);
    }
    exprs.push_back(std::move(expr));
  }
  NodePtr node = MakeNode(Node::Kind::kView, {node_}, std::move(symbols));
  node->index = std::move(exprs);
  return Tensor(std::move(node));
}

Tensor Tensor::pad(const Symbol& symbol, std::int64_t before, std::int64_t after,
                   double outside) const {
  const std::size_t axis = AxisIn(*node_, symbol, "pad");
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  if (before < 0 || after < 0 || before > kMost || after > kMost) {
    Throw(Kind::kShape, fmt::format("pad of {} by {} and {}: both are from 0 to {}", symbol.name(),
                                    before, after, kMost));
  }
  std::vector<Symbol> symbols = node_->symbols;
  const Symbol padded = Symbol::Named(symbol);
  symbols[axis] = padded;
  return to(symbols,
            {{Expr(symbol), Expr(padded) - Expr(before)},
             {Size(padded), Size(symbol) + Expr(before + after)}},
            outside);
}

Tensor Tensor::concat(const Tensor& other) const {
  const Node& a = *node_;
  const Node& b = *other.node_;
  std::optional<std::size_t> axis;
  bool fits = a.symbols.size() == b.symbols.size();
  for (std::size_t i = 0; fits && i < a.symbols.size(); ++i) {
    if (a.symbols[i] == b.symbols[i]) continue;
    fits = !axis;
    axis = i;
  }
  if (!fits || !axis) {
    Throw(Kind::kShape, fmt::format("{} | {}: exactly one dim must have another symbol",
                                    Describe(a), Describe(b)));
  }
  std::vector<Symbol> symbols = a.symbols;
  symbols[*axis] = Symbol::Named(a.symbols[*axis]);
  NodePtr node = MakeNode(Node::Kind::kConcat, {node_, other.node_}, std::move(symbols));
  node->axis = static_cast<std::uint32_t>(*axis);
  return Tensor(std::move(node));
}

Tensor Tensor::transpose(const std::vector<Symbol>& symbols) const {
  const bool is_permutation = symbols.size() == node_->symbols.size() &&
                              std::ranges::all_of(node_->symbols, [&](const Symbol& symbol) {
                                return std::ranges::count(symbols, symbol) == 1;
                              });
  if (!is_permutation) {
    Throw(Kind::kShape, fmt::format("transpose({}): no permutation of the dims of {}",
                                    Join(symbols), Describe(*node_)));
  }
  return Tensor(MakeNode(Node::Kind::kTranspose, {node_}, symbols));
}

Tensor Tensor::flatten(const std::vector<Symbol>& symbols, std::optional<Symbol> into) const {
  std::vector<Symbol> given = symbols.empty() ? node_->symbols : symbols;
  if (given.empty()) Throw(Kind::kShape, "flatten: a tensor of rank 0 has no dims");
  const std::size_t axis = AxisIn(*node_, given[0], "flatten");
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (AxisIn(*node_, given[i], "flatten") != axis + i) {
      Throw(Kind::kShape,
            fmt::format("flatten({}): these are not neighbours, in this order, in [{}]",
                        Join(given), Join(node_->symbols)));
    }
  }
  std::string name;
  for (const Symbol& symbol : given) name += (name.empty() ? "" : "_") + symbol.name();
  std::vector<Symbol> made = node_->symbols;
  const auto first = made.begin() + static_cast<std::ptrdiff_t>(axis);
  made.erase(first + 1, first + static_cast<std::ptrdiff_t>(given.size()));
  made[axis] = into ? *into : Symbol(name);
  CheckDistinct(made, "flatten");
  NodePtr node = MakeNode(Node::Kind::kReshape, {node_}, std::move(made));
  node->axis = static_cast<std::uint32_t>(axis);
  node->count = static_cast<std::uint32_t>(given.size());
  node->new_count = 1;
  return Tensor(std::move(node));
}

Tensor Tensor::unflatten(const Symbol& symbol,
                         const std::vector<std::pair<Symbol, std::int64_t>>& into) const {
  const std::size_t axis = AxisIn(*node_, symbol, "unflatten");
  if (into.empty()) Throw(Kind::kShape, "unflatten: name at least one dim");
  std::vector<Symbol> made = node_->symbols;
  made.erase(made.begin() + static_cast<std::ptrdiff_t>(axis));
  std::vector<SizeEquation> sizes;
  for (std::size_t i = 0; i < into.size(); ++i) {
    made.insert(made.begin() + static_cast<std::ptrdiff_t>(axis + i), into[i].first);
    if (into[i].second == 0) continue;
    if (into[i].second < 0) {
      Throw(Kind::kShape, fmt::format("unflatten: size {} of {}; sizes are at least 1",
                                      into[i].second, into[i].first.name()));
    }
    sizes.push_back({.symbol = into[i].first, .expr = Expr(into[i].second)});
  }
  CheckDistinct(made, "unflatten");
  NodePtr node = MakeNode(Node::Kind::kReshape, {node_}, std::move(made));
  node->axis = static_cast<std::uint32_t>(axis);
  node->count = 1;
  node->new_count = static_cast<std::uint32_t>(into.size());
  node->sizes = std::move(sizes);
  return Tensor(std::move(node));
}

float Tensor::item() const {
  const std::shared_ptr<Buffer> values = buffer();
  if (values->count() != 1) {
    Throw(Kind::kShape,
          fmt::format("{} has {} elements, not one", Describe(*node_), values->count()));
  }
  return values->data()[0];
}

void Tensor::force_recompute() const {
  node_->result.reset();
  node_->result_of.clear();
}

std::vector<std::shared_ptr<Schedule>> Tensor::segments() const {
  std::vector<std::shared_ptr<Schedule>> schedules;
  for (const Plan::Segment& segment : Session::Of().PlanOf(*node_)->segments) {
    schedules.push_back(segment.schedule);
  }
  return schedules;
}

std::shared_ptr<Schedule> Tensor::schedule() const {
  const auto plan = Session::Of().PlanOf(*node_);
  if (!plan->segments.empty()) return plan->segments.back().schedule;
  Throw(Kind::kTensor, fmt::format("{} computes nothing, so it has no schedule", Describe(*node_)));
}

const Tensor& Tensor::set(const looptree::LoopTree& tree) const {
  const std::shared_ptr<Schedule> mine = schedule();
  if (looptree::ProgramKeyOf(tree.program()) == mine->key()) {
    mine->Set(tree);
    return *this;
  }
  // The first lines of the programs that differ say most.
  const std::string given = looptree::CanonicalForm(tree.program());
  const std::string wanted = looptree::CanonicalForm(mine->tree().program());
  const auto [a, b] = std::ranges::mismatch(given, wanted);
  const auto line_at = [](const std::string& text, std::size_t at) {
    const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    return text.substr(begin, std::min<std::size_t>(text.find('\n', begin) - begin, 120));
  };
  Throw(Kind::kSchedule,
        fmt::format("the tree is of another program than {}: it has '{}' where this has '{}'",
                    Describe(*node_), line_at(given, static_cast<std::size_t>(a - given.begin())),
                    line_at(wanted, static_cast<std::size_t>(b - wanted.begin()))));
}

void Tensor::compile() const {
  for (const std::shared_ptr<Schedule>& schedule : segments()) schedule->Code();
}

std::uint64_t Tensor::flops() const {
  std::uint64_t count = 0;
  for (const std::shared_ptr<Schedule>& schedule : segments()) {
    count += schedule->flop_count();
  }
  return count;
}

}  // namespace loopfleet::tensor
