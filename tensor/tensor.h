#pragma once
// Tensor: a lazy array of float32 with named dimensions. Operations build a graph; shape(), data()
// and the like look at it, infer sizes, and run it as one kernel, or a few (segments()). Nothing
// that a tensor computes ever changes, except by set() on a leaf. Copies are the same tensor.
// Methods throw TensorError (TryTo in tensor_error.h gives a Result instead). One thread at a time.
//
//   const Symbol m("m"), n("n"), k("k");
//   Tensor a(std::vector<Symbol>{m, k}), b(std::vector<Symbol>{k, n});
//   Tensor c = (a * b).sum({k});

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/looptree/tree/loop_tree.h"
#include "tensor/node.h"
#include "tensor/session.h"
#include "tensor/symbol.h"
#include "tensor/tensor_error.h"

namespace loopfleet::tensor {

// An index into a tensor: one expression for each of its dims.
struct Index {
  template <class... Given>
    requires(std::convertible_to<Given, Expr> && ...)
  explicit Index(const Given&... given) : exprs{Expr(given)...} {}
  explicit Index(std::vector<Expr> the_exprs) : exprs(std::move(the_exprs)) {}
  std::vector<Expr> exprs;
};

class Tensor {
 public:
  using Shape = std::vector<std::int64_t>;
  // Both sides of an equation of a view are equal.
  using Constraint = std::pair<Expr, Expr>;

  // A leaf without values; sizes come by set_size, by values, or are inferred. No symbols: rank 0.
  explicit Tensor(std::vector<Symbol> symbols);
  // A leaf of zeros with fresh symbols.
  explicit Tensor(const Shape& sizes);
  // A leaf with these values, as many as the sizes say, and fresh symbols.
  Tensor(const Shape& sizes, std::shared_ptr<Buffer> values);
  // A number, folded into the kernels that use it.
  static Tensor Constant(double value);
  explicit Tensor(NodePtr node) : node_(std::move(node)) {}

  // Only of leaves. The values, as many as `sizes` say, must fit the sizes it was made with.
  Tensor& set(const Shape& sizes, std::shared_ptr<Buffer> values);
  Tensor& set(std::span<const float> values);  // as many as its sizes say; copied
  Tensor& fill(float value);                   // of all elements; rank 0 or known sizes
  Tensor& set_size(const Shape& sizes);

  const std::vector<Symbol>& symbolic_shape() const { return node_->symbols; }
  std::size_t ndim() const { return node_->symbols.size(); }
  Shape shape() const;          // infers
  std::int64_t size() const;    // elements
  const Tensor& unify() const;  // infers all sizes of its graph; throws as shape() does

  Tensor Unary(looptree::Op op) const;
  Tensor Binary(looptree::Op op, const Tensor& other) const;
  static Tensor Where(const Tensor& condition, const Tensor& yes, const Tensor& no);
  Tensor Reduce(looptree::Op op, const std::vector<Symbol>& over) const;  // empty: all dims
  Tensor sum(const std::vector<Symbol>& over = {}) const;
  Tensor prod(const std::vector<Symbol>& over = {}) const;
  Tensor max_reduce(const std::vector<Symbol>& over = {}) const;
  Tensor min_reduce(const std::vector<Symbol>& over = {}) const;
  Tensor mean(const std::vector<Symbol>& over = {}) const;
  Tensor max(const Tensor& other) const { return Binary(looptree::Op::kMax, other); }
  Tensor min(const Tensor& other) const { return Binary(looptree::Op::kMin, other); }
  Tensor exp() const { return Unary(looptree::Op::kExp); }
  Tensor log() const { return Unary(looptree::Op::kLog); }
  Tensor sqrt() const { return Unary(looptree::Op::kSqrt); }
  Tensor abs() const { return Unary(looptree::Op::kAbs); }
  Tensor reciprocal() const { return Unary(looptree::Op::kReciprocal); }

  Tensor to(std::vector<Symbol> symbols) const;  // renames by position
  Tensor as(std::vector<Symbol> symbols) const { return to(std::move(symbols)); }
  // A view: each equation relates symbols of input, output and sizes. Elements outside are
  // `outside`.
  Tensor to(const std::vector<Symbol>& symbols, const std::vector<Constraint>& constraints,
            double outside = 0) const;
  Tensor operator[](const Index& index) const;
  Tensor pad(const Symbol& symbol, std::int64_t before, std::int64_t after,
             double outside = 0) const;
  Tensor concat(const Tensor& other) const;  // along the one dim whose symbols differ
  Tensor transpose(const std::vector<Symbol>& symbols) const;
  // Neighbouring dims become one. `into`: its symbol.
  Tensor flatten(const std::vector<Symbol>& symbols, std::optional<Symbol> into = {}) const;
  // One dim becomes several; sizes of 0 are inferred.
  Tensor unflatten(const Symbol& symbol,
                   const std::vector<std::pair<Symbol, std::int64_t>>& into) const;

  std::shared_ptr<Buffer> buffer() const { return Session::Of().Evaluate(*node_); }
  // The shape of what buffer() gave last.
  const Shape& computed_shape() const {
    return node_->kind == Node::Kind::kLeaf ? node_->bound : node_->result_shape;
  }
  template <class T>
  std::span<const T> data() const {
    static_assert(std::is_same_v<T, float>, "tensors are of float32");
    const std::shared_ptr<Buffer> values = buffer();
    return {values->data(), values->count()};  // kept by the tensor until a leaf is set
  }
  float item() const;  // of a tensor with one element
  void resolve() const { buffer(); }
  void force_recompute() const;

  // The schedule of its last segment, shared by all tensors of the same structure. kTensor if it
  // has none, as a leaf.
  const looptree::LoopTree& loop_tree() const { return schedule()->tree(); }
  std::shared_ptr<Schedule> schedule() const;
  std::vector<std::shared_ptr<Schedule>> segments() const;
  // kSchedule unless it is a tree of the same program, with the first difference.
  const Tensor& set(const looptree::LoopTree& tree) const;
  void compile() const;         // so that the first evaluation finds its code
  std::uint64_t flops() const;  // of all segments

  const NodePtr& node() const { return node_; }
  // The tensor; for a number that is folded into kernels, one that they read. An operation on
  // numbers alone needs one.
  Tensor Readable() const;

 private:
  NodePtr node_;
};

inline Tensor operator+(const Tensor& a, const Tensor& b) {
  return a.Binary(looptree::Op::kAdd, b);
}
inline Tensor operator-(const Tensor& a, const Tensor& b) {
  return a.Binary(looptree::Op::kSubtract, b);
}
inline Tensor operator*(const Tensor& a, const Tensor& b) {
  return a.Binary(looptree::Op::kMultiply, b);
}
inline Tensor operator/(const Tensor& a, const Tensor& b) {
  return a.Binary(looptree::Op::kDivide, b);
}
inline Tensor operator-(const Tensor& a) { return a.Unary(looptree::Op::kNegate); }
inline Tensor operator|(const Tensor& a, const Tensor& b) { return a.concat(b); }

}  // namespace loopfleet::tensor
