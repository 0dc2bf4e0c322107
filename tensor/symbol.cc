#include "tensor/symbol.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_set>
#include <utility>

namespace loopfleet::tensor {
namespace {

const std::string* Interned(std::string_view name) {
  static std::mutex mutex;
  static std::unordered_set<std::string>* const names = new std::unordered_set<std::string>;
  const std::lock_guard lock(mutex);
  return &*names->emplace(name).first;
}

std::uint64_t NextId() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

constexpr std::uint64_t kFreshBit = std::uint64_t{1} << 63;

bool AddOverflows(std::int64_t a, std::int64_t b, std::int64_t& sum) {
  return __builtin_add_overflow(a, b, &sum);
}

}  // namespace

Symbol::Symbol(std::string_view name) : id_(NextId()), name_(Interned(name)) {}

Symbol Symbol::Fresh() {
  static std::atomic<std::uint64_t> next = 0;
  return Symbol(kFreshBit | next++, nullptr);
}

Symbol Symbol::Named(const Symbol& like) {
  if (like.is_fresh()) return Fresh();
  return Symbol(NextId(), like.name_);
}

std::string Symbol::name() const {
  return name_ != nullptr ? *name_ : fmt::format("_{}", id_ & ~kFreshBit);
}

Expr Expr::SizeOf(const Symbol& symbol) {
  Expr size(symbol);
  size.terms_.front().is_size = true;
  return size;
}

Expr Expr::Problem(std::string problem) {
  Expr expr(0);
  expr.problem_ = std::move(problem);
  return expr;
}

void Expr::Add(const Term& term) {
  const auto same = std::ranges::find_if(terms_, [&](const Term& mine) {
    return mine.symbol == term.symbol && mine.is_size == term.is_size;
  });
  if (same == terms_.end()) {
    terms_.push_back(term);
    return;
  }
  if (AddOverflows(same->coefficient, term.coefficient, same->coefficient)) {
    problem_ = "a coefficient exceeds 64 bits";
  }
  if (same->coefficient == 0) terms_.erase(same);
}

Expr operator*(const Expr& a, const Expr& b) {
  if (!a.problem_.empty()) return a;
  if (!b.problem_.empty()) return b;
  const Expr& factor = a.is_constant() ? a : b;
  const Expr& other = a.is_constant() ? b : a;
  if (!factor.is_constant()) {
    return Expr::Problem(
        fmt::format("({}) * ({}) is a product of symbols", a.ToString(), b.ToString()));
  }
  if (other.divisor_ != 1 && factor.constant_ != 1) {
    return Expr::Problem(
        fmt::format("({}) * {} multiplies a quotient", other.ToString(), factor.constant_));
  }
  Expr product(0);
  product.divisor_ = other.divisor_;
  bool overflows = __builtin_mul_overflow(other.constant_, factor.constant_, &product.constant_);
  for (Expr::Term term : other.terms_) {
    overflows |= __builtin_mul_overflow(term.coefficient, factor.constant_, &term.coefficient);
    if (term.coefficient != 0) product.terms_.push_back(term);
  }
  if (overflows) return Expr::Problem("a product exceeds 64 bits");
  return product;
}

Expr operator+(const Expr& a, const Expr& b) {
  if (!a.problem_.empty()) return a;
  if (!b.problem_.empty()) return b;
  // Each quotient is rounded by itself, so no two make one.
  const bool has_quotient = a.divisor_ != 1 || b.divisor_ != 1;
  if (has_quotient && !a.is_constant() && !b.is_constant()) {
    return Expr::Problem(fmt::format("({}) + ({}) adds quotients", a.ToString(), b.ToString()));
  }
  const std::int64_t divisor = std::max(a.divisor_, b.divisor_);
  // A whole number beside a quotient: (x / d) + n = (x + n * d) / d.
  Expr sum = a.divisor_ == divisor ? a : a * Expr(divisor);
  const Expr other = b.divisor_ == divisor ? b : b * Expr(divisor);
  sum.divisor_ = divisor;
  for (const Expr::Term& term : other.terms_) sum.Add(term);
  if (AddOverflows(sum.constant_, other.constant_, sum.constant_)) {
    return Expr::Problem("a sum exceeds 64 bits");
  }
  return sum;
}

Expr Expr::operator-() const {
  Expr negated = *this;
  negated.constant_ = -negated.constant_;
  for (Term& term : negated.terms_) term.coefficient = -term.coefficient;
  return negated;
}

Expr operator-(const Expr& a, const Expr& b) { return a + -b; }

Expr Expr::DividedBy(std::int64_t divisor) const {
  if (!problem_.empty()) return *this;
  if (divisor < 1) return Problem(fmt::format("a division by {}", divisor));
  Expr quotient = *this;
  if (is_constant() && constant_ % divisor == 0) {
    quotient.constant_ /= divisor;
  } else if (__builtin_mul_overflow(quotient.divisor_, divisor, &quotient.divisor_)) {
    return Problem("a divisor exceeds 64 bits");
  }
  return quotient;
}

std::string Expr::ToString() const {
  if (!problem_.empty()) return problem_;
  std::string text;
  for (const Term& term : terms_) {
    const std::string name =
        term.is_size ? fmt::format("Size({})", term.symbol.name()) : term.symbol.name();
    const std::int64_t magnitude = term.coefficient < 0 ? -term.coefficient : term.coefficient;
    if (!text.empty()) {
      text += term.coefficient < 0 ? " - " : " + ";
    } else if (term.coefficient < 0) {
      text += "-";
    }
    text += magnitude == 1 ? name : fmt::format("{} * {}", magnitude, name);
  }
  if (text.empty()) {
    text = std::to_string(constant_);
  } else if (constant_ != 0) {
    text +=
        fmt::format(" {} {}", constant_ < 0 ? '-' : '+', constant_ < 0 ? -constant_ : constant_);
  }
  return divisor_ == 1 ? text : fmt::format("({}) // {}", text, divisor_);
}

}  // namespace loopfleet::tensor
