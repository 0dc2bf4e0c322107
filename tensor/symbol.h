#pragma once
// Symbol: the name of a dimension, with an identity of its own: two symbols of one name differ.
// Expr: a whole-number combination of symbols (indices along them) and of sizes of dimensions.
// Values; safe from any thread.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace loopfleet::tensor {

class Symbol {
 public:
  explicit Symbol(std::string_view name);   // a new identity
  static Symbol Fresh();                    // named `_0`, `_1` ... by the order of making
  static Symbol Named(const Symbol& like);  // another of the same name; fresh if `like` is

  std::uint64_t id() const { return id_; }
  std::string name() const;
  bool is_fresh() const { return name_ == nullptr; }
  friend bool operator==(const Symbol& a, const Symbol& b) { return a.id_ == b.id_; }

 private:
  Symbol(std::uint64_t id, const std::string* name) : id_(id), name_(name) {}
  std::uint64_t id_;
  const std::string* name_;  // kept as long as the process; null: fresh
};

class Expr {
 public:
  struct Term {
    Symbol symbol;
    bool is_size = false;  // the size of the symbol's dim, not an index along it
    std::int64_t coefficient = 1;
    friend bool operator==(const Term&, const Term&) = default;
  };

  Expr(std::int64_t constant) : constant_(constant) {}        // NOLINT(google-explicit-constructor)
  Expr(const Symbol& symbol) : terms_{{.symbol = symbol}} {}  // NOLINT(google-explicit-constructor)
  static Expr SizeOf(const Symbol& symbol);

  // (constant + terms) / divisor.
  const std::vector<Term>& terms() const { return terms_; }
  std::int64_t constant() const { return constant_; }
  std::int64_t divisor() const { return divisor_; }
  // Why this is no affine expression, such as "m * n is a product of symbols"; "": it is one. Made
  // into a view, such an expression is an error.
  const std::string& problem() const { return problem_; }
  bool is_constant() const { return terms_.empty() && divisor_ == 1 && problem_.empty(); }
  std::string ToString() const;

  friend Expr operator+(const Expr& a, const Expr& b);
  friend Expr operator-(const Expr& a, const Expr& b);
  friend Expr operator*(const Expr& a, const Expr& b);
  Expr operator-() const;
  // By a whole number of at least 1. In a view: whole quotients alone name an element.
  Expr DividedBy(std::int64_t divisor) const;

 private:
  void Add(const Term& term);
  static Expr Problem(std::string problem);

  std::vector<Term> terms_;  // each symbol once, no coefficient 0
  std::int64_t constant_ = 0;
  std::int64_t divisor_ = 1;
  std::string problem_;
};

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
inline Expr Size(const Symbol& symbol) { return Expr::SizeOf(symbol); }

}  // namespace loopfleet::tensor

template <>
struct std::hash<loopfleet::tensor::Symbol> {
  std::size_t operator()(const loopfleet::tensor::Symbol& symbol) const {
    return std::hash<std::uint64_t>()(symbol.id());
  }
};
