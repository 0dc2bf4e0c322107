#include "common/looptree/text/view_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "common/base/result.h"
#include "common/base/suggestion.h"
#include "common/looptree/program/checked_math.h"
#include "common/looptree/program/dim_set.h"
#include "common/looptree/program/number_text.h"

namespace loopfleet::looptree {
namespace {

// The operations of constraint expressions, numbered as in IR text.
enum class ExpressionOp : std::int64_t {
  kLeaf = 0,
  kNegate = 1,
  kReciprocal = 2,
  kSize = 3,
  kMax = 4,
  kAdd = 5,
  kMultiply = 6,
  kDivide = 7,
};

constexpr std::size_t kMaxArguments = 8;  // of one function; the supported ones take at most two

std::unexpected<Rejection> Invalid(std::string message) {
  return Reject(RejectionCode::kInvalidBenchmark, std::move(message));
}

// The value of an entry. Neither is set: not affine.
struct Value {
  std::optional<AffineForm> form;
  std::optional<DimId> size_of;
};

std::optional<AffineForm> Scaled(const AffineForm& form, std::int64_t factor) {
  AffineForm scaled;
  const auto constant = CheckedMultiply(form.constant, factor);
  if (!constant) return std::nullopt;
  scaled.constant = *constant;
  for (const AffineTerm& term : form.terms) {
    const auto coefficient = CheckedMultiply(term.coefficient, factor);
    if (!coefficient) return std::nullopt;
    if (*coefficient != 0) scaled.terms.push_back({term.dim, *coefficient});
  }
  return scaled;
}

std::optional<AffineForm> Sum(const AffineForm& a, const AffineForm& b) {
  AffineForm sum = a;
  const auto constant = CheckedAdd(a.constant, b.constant);
  if (!constant) return std::nullopt;
  sum.constant = *constant;
  std::array<std::int8_t, kMaxDims> places;  // index of each dim's term in the sum; -1: none
  places.fill(-1);
  for (std::size_t i = 0; i < a.terms.size(); ++i) {
    places[a.terms[i].dim] = static_cast<std::int8_t>(i);
  }
  for (const AffineTerm& term : b.terms) {
    const std::int8_t place = places[term.dim];
    if (place < 0) {
      sum.terms.push_back(term);
      continue;
    }
    std::int64_t& coefficient = sum.terms[static_cast<std::size_t>(place)].coefficient;
    const auto both = CheckedAdd(coefficient, term.coefficient);
    if (!both) return std::nullopt;
    coefficient = *both;
  }
  std::erase_if(sum.terms, [](const AffineTerm& term) { return term.coefficient == 0; });
  return sum;
}

std::optional<AffineForm> Apply(ExpressionOp op, const std::vector<const Value*>& arguments) {
  if (!std::all_of(arguments.begin(), arguments.end(),
                   [](const Value* value) { return value->form.has_value(); })) {
    return std::nullopt;
  }
  if (op == ExpressionOp::kNegate && arguments.size() == 1) {
    if (arguments[0]->form->divisor != 1) return std::nullopt;
    return Scaled(*arguments[0]->form, -1);
  }
  if (arguments.size() != 2) return std::nullopt;
  const AffineForm& a = *arguments[0]->form;
  const AffineForm& b = *arguments[1]->form;
  if (op == ExpressionOp::kDivide && b.terms.empty() && b.divisor == 1 && b.constant > 0) {
    AffineForm quotient = a;
    const auto divisor = CheckedMultiply(a.divisor, b.constant);
    if (!divisor) return std::nullopt;
    quotient.divisor = *divisor;
    return quotient;
  }
  if (a.divisor != 1 || b.divisor != 1) return std::nullopt;
  if (op == ExpressionOp::kAdd) return Sum(a, b);
  if (op == ExpressionOp::kMultiply && a.terms.empty()) return Scaled(b, a.constant);
  if (op == ExpressionOp::kMultiply && b.terms.empty()) return Scaled(a, b.constant);
  return std::nullopt;
}

// Parses one view's constraints. Their entries are numbered consecutively across all expressions.
class ConstraintParser {
 public:
  ConstraintParser(const std::map<std::size_t, DimId>& symbols, const ViewContext& context)
      : symbols_(symbols), context_(context) {
    for (const DimId dim : context.view_dims) {
      if (dim < kMaxDims) view_dims_.Add(dim);
    }
  }

  Checked<ViewConstraints> Parse(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = text.find('/');
      if (end == std::string_view::npos) return Invalid("a constraint must end in '/'");
      const auto sides = SplitText(text.substr(0, end), '=', 3);
      text.remove_prefix(end + 1);
      if (sides.size() != 2) return Invalid("a constraint must be <expression>=<expression>");
      LF_TRY(const std::size_t left, ParseSide(sides[0]));
      LF_TRY(const std::size_t right, ParseSide(sides[1]));
      LF_TRY_VOID(Note(values_[left], values_[right]));
    }
    constraints_.entry_count = values_.size();
    return std::move(constraints_);
  }

 private:
  // Returns the number of the side's last entry, which is the side's value.
  Checked<std::size_t> ParseSide(std::string_view text) {
    if (text.empty()) return Invalid("an expression must be entries that end in ';'");
    while (!text.empty()) {
      const std::size_t end = text.find(';');
      if (end == std::string_view::npos) {
        return Invalid("an expression must be entries that end in ';'");
      }
      if (values_.size() >= context_.most_entries) {
        return Reject(RejectionCode::kLimitTree,
                      fmt::format("the program's views have more than {} expression entries",
                                  kMaxViewEntries));
      }
      LF_TRY(Value value, ParseEntry(text.substr(0, end)));
      values_.push_back(std::move(value));
      text.remove_prefix(end + 1);
    }
    return values_.size() - 1;
  }

  Checked<Value> ParseEntry(std::string_view text) const {
    const auto fields = SplitText(text, '|', 5);
    const auto op = fields.empty() ? std::nullopt : ParseInteger(fields[0]);
    if (fields.size() != 4 || !fields[3].empty() || !op || *op < 0 || *op > 7) {
      return Invalid(fmt::format("bad expression entry {}", Quoted(text)));
    }
    const std::string_view payload = fields[2];
    if (fields[1] == "s") return Symbol(values_.size());
    if (fields[1] == "r") {
      LF_TRY(const std::size_t number, EntryNumber(payload));
      return values_[number];
    }
    if (fields[1] == "v") {
      const auto number = ParseInteger(payload);
      if (!number) return Invalid(fmt::format("bad number {}", Quoted(payload)));
      return Value{.form = AffineForm{{}, *number}};
    }
    if (fields[1] == "f") return Function(static_cast<ExpressionOp>(*op), payload);
    return Invalid(fmt::format("bad kind of expression entry {}", Quoted(text)));
  }

  Checked<Value> Symbol(std::size_t number) const {
    const auto dim = symbols_.find(number);
    if (dim == symbols_.end()) {
      return Invalid(fmt::format("symbol {} of a view is not in its symbol map", number));
    }
    return Value{.form = AffineForm{{{dim->second, 1}}, 0}};
  }

  Checked<Value> Function(ExpressionOp op, std::string_view payload) const {
    const auto parts = SplitText(payload, ',', kMaxArguments + 2);
    if (parts.size() < 2 || parts.size() > kMaxArguments + 1 || !parts.back().empty()) {
      return Invalid(fmt::format("bad arguments {}", Quoted(payload)));
    }
    std::vector<const Value*> arguments;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      LF_TRY(const std::size_t number, EntryNumber(parts[i]));
      arguments.push_back(&values_[number]);
    }
    Value value;
    if (op == ExpressionOp::kSize) {
      const auto& form = arguments[0]->form;
      if (form && form->terms.size() == 1) value.size_of = form->terms[0].dim;
    } else {
      value.form = Apply(op, arguments);
    }
    return value;
  }

  Checked<std::size_t> EntryNumber(std::string_view text) const {
    const auto number = ParseInteger(text);
    if (!number || *number < 0 || static_cast<std::size_t>(*number) >= values_.size()) {
      return Invalid(fmt::format("an expression refers to entry {}, which does not come before it",
                                 Quoted(text)));
    }
    return static_cast<std::size_t>(*number);
  }

  Checked<void> Note(const Value& left, const Value& right) {
    if (left.size_of && right.form && right.form->terms.empty() && right.form->divisor == 1) {
      const auto [at, inserted] = constraints_.sizes.emplace(*left.size_of, right.form->constant);
      if (!inserted && at->second != right.form->constant) {
        return Invalid("a view gives a dimension two sizes");
      }
    } else if (left.form && left.form->terms.size() == 1 && left.form->constant == 0 &&
               left.form->terms[0].coefficient == 1 && left.form->divisor == 1 && right.form &&
               IsOverViewDims(*right.form)) {
      constraints_.equal.try_emplace(left.form->terms[0].dim, *right.form);
    } else if (left.form && right.form) {
      Solve(*left.form, *right.form);
    }
    return {};
  }

  // Isolates the only dim of the equation that the view lacks, if there is one.
  void Solve(const AffineForm& left, const AffineForm& right) {
    const auto scaled_left = Scaled(left, right.divisor);
    const auto scaled_right = Scaled(right, -left.divisor);
    if (!scaled_left || !scaled_right) return;
    const auto zero = Sum(*scaled_left, *scaled_right);
    if (!zero) return;
    const auto lacks = [&](const AffineTerm& term) { return !view_dims_.Has(term.dim); };
    if (std::ranges::count_if(zero->terms, lacks) != 1) return;
    const AffineTerm sought = *std::ranges::find_if(zero->terms, lacks);
    AffineForm rest = *zero;
    std::erase_if(rest.terms, lacks);
    auto isolated = sought.coefficient > 0 ? Scaled(rest, -1) : rest;
    const auto divisor = CheckedMultiply(sought.coefficient, sought.coefficient > 0 ? 1 : -1);
    if (!isolated || !divisor) return;
    isolated->divisor = *divisor;
    constraints_.solved.try_emplace(sought.dim, *std::move(isolated));
  }

  bool IsOverViewDims(const AffineForm& form) const {
    return std::all_of(form.terms.begin(), form.terms.end(),
                       [&](const AffineTerm& term) { return view_dims_.Has(term.dim); });
  }

  const std::map<std::size_t, DimId>& symbols_;
  const ViewContext& context_;
  DimSet view_dims_;
  std::vector<Value> values_;
  ViewConstraints constraints_;
};

Checked<std::map<std::size_t, DimId>> ParseSymbolMap(std::string_view text, std::size_t dim_count) {
  std::map<std::size_t, DimId> symbols;
  const auto parts = SplitText(text, ',', kMaxViewEntries + 2);
  if (parts.empty()) return symbols;
  if (parts.size() > kMaxViewEntries + 1) {
    return Reject(RejectionCode::kLimitTree,
                  fmt::format("a symbol map has more than {} entries", kMaxViewEntries));
  }
  if (!parts.back().empty()) return Invalid("a symbol map must end in ','");
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const auto sides = SplitText(parts[i], '=', 3);
    const auto number = sides.size() == 2 ? ParseInteger(sides[0]) : std::nullopt;
    const auto dim = sides.size() == 2 ? ParseInteger(sides[1]) : std::nullopt;
    if (!number || !dim || *number < 0 || *dim < 0 || static_cast<std::size_t>(*dim) >= dim_count) {
      return Invalid(fmt::format("bad symbol map entry {}", Quoted(parts[i])));
    }
    symbols[static_cast<std::size_t>(*number)] = static_cast<DimId>(*dim);
  }
  return symbols;
}

bool Contains(const std::vector<DimId>& dims, DimId dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

// Writes numbered entries.
class ConstraintWriter {
 public:
  explicit ConstraintWriter(const Program& program) : program_(program) {}

  void Size(DimId dim) {
    if (symbols_.contains(dim)) return;
    const std::size_t symbol = Entry("0|s|{}|;", program_.dims[dim].name);
    symbols_[dim] = symbol;
    Entry("3|f|{},|;", symbol);
    text_ += '=';
    Entry("0|v|{}|;", program_.dims[dim].size);
    text_ += '/';
  }

  void Index(const ViewIndex& index) {
    Entry("0|r|{}|;", symbols_[index.input_dim]);
    text_ += '=';
    std::optional<std::size_t> sum;
    const auto add = [&](std::size_t number) {
      sum = sum ? Entry("5|f|{},{},|;", *sum, number) : number;
    };
    for (const AffineTerm& term : index.terms) add(Term(term));
    if (index.constant != 0 || !sum) add(Entry("0|v|{}|;", index.constant));
    if (index.divisor != 1) {
      const std::size_t divisor = Entry("0|v|{}|;", index.divisor);
      Entry("7|f|{},{},|;", *sum, divisor);
    }
    text_ += '/';
  }

  ViewText Finish() {
    ViewText view{std::move(text_), "", count_};
    for (const auto& [dim, symbol] : symbols_) {
      fmt::format_to(std::back_inserter(view.symbol_map), "{}={},", symbol, dim);
    }
    return view;
  }

 private:
  template <class... Args>
  std::size_t Entry(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    return count_++;
  }

  std::size_t Term(const AffineTerm& term) {
    const std::size_t symbol = symbols_[term.dim];
    Entry("0|r|{}|;", symbol);
    if (term.coefficient == 1) return symbol;
    const std::size_t coefficient = Entry("0|v|{}|;", term.coefficient);
    return Entry("6|f|{},{},|;", coefficient, symbol);
  }

  const Program& program_;
  std::string text_;
  std::size_t count_ = 0;
  std::map<DimId, std::size_t> symbols_;
};

}  // namespace

Checked<ViewConstraints> ParseViewConstraints(std::string_view constraints,
                                              std::string_view symbol_map,
                                              const ViewContext& context) {
  LF_TRY(const auto symbols, ParseSymbolMap(symbol_map, context.dim_count));
  return ConstraintParser(symbols, context).Parse(constraints);
}

Checked<std::vector<ViewIndex>> SolveView(const ViewConstraints& constraints,
                                          const std::vector<DimId>& input_dims,
                                          const std::vector<DimId>& view_dims,
                                          const Program& program, bool guarded) {
  const auto form_of = [&](DimId dim) -> std::optional<AffineForm> {
    if (const auto at = constraints.equal.find(dim); at != constraints.equal.end()) {
      return at->second;
    }
    if (Contains(view_dims, dim)) return AffineForm{{{dim, 1}}, 0};
    if (const auto at = constraints.solved.find(dim); at != constraints.solved.end()) {
      return at->second;
    }
    return std::nullopt;
  };
  std::vector<ViewIndex> view;
  for (const DimId input_dim : input_dims) {
    const auto form = form_of(input_dim);
    if (!form || (form->divisor != 1 && !guarded)) {
      return Reject(
          RejectionCode::kUnsupported,
          fmt::format("a view must give dimension {} of its input as a sum of multiples of"
                      " its own dimensions{}",
                      program.dims[input_dim].name,
                      form ? "; dividing needs the annotation 'outside=0x0p+0'" : ""));
    }
    view.push_back({input_dim, form->terms, form->constant, form->divisor, guarded});
  }
  return view;
}

ViewText ViewTextOf(const Program& program, NodeId view) {
  const Node& node = program.nodes[view];
  ConstraintWriter writer(program);
  for (const DimId dim : program.nodes[node.inputs[0]].dims) writer.Size(dim);
  for (const DimId dim : node.dims) writer.Size(dim);
  for (const ViewIndex& index : node.view) {
    const bool same = index.constant == 0 && index.divisor == 1 && index.terms.size() == 1 &&
                      index.terms[0] == AffineTerm{index.input_dim, 1};
    if (!same) writer.Index(index);
  }
  return writer.Finish();
}

}  // namespace loopfleet::looptree
