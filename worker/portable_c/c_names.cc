#include "worker/portable_c/c_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace loopfleet::worker {
namespace {

using looptree::Op;

struct MathFunction {
  Op op;
  std::string_view name;
};
constexpr MathFunction kMathFunctions[] = {
    {Op::kLog, "logf"},     {Op::kExp, "expf"},   {Op::kSqrt, "sqrtf"},       {Op::kAbs, "fabsf"},
    {Op::kTanh, "tanhf"},   {Op::kErf, "erff"},   {Op::kSin, "sinf"},         {Op::kCos, "cosf"},
    {Op::kFloor, "floorf"}, {Op::kCeil, "ceilf"}, {Op::kRound, "nearbyintf"}, {Op::kPower, "powf"}};

// Keywords of C11 and the other names that the file uses, macros of its headers included.
constexpr auto kReserved = std::to_array<std::string_view>(
    {"auto",     "break",  "case",     "char",     "const",    "continue", "default",  "do",
     "double",   "else",   "enum",     "extern",   "float",    "for",      "goto",     "if",
     "inline",   "int",    "long",     "register", "restrict", "return",   "short",    "signed",
     "sizeof",   "static", "struct",   "switch",   "typedef",  "union",    "unsigned", "void",
     "volatile", "while",  "asm",      "buffers",  "scratch",  "smaller",  "larger",   "linux",
     "unix",     "i386",   "INFINITY", "NAN",      "int64_t",  "main",     "true",     "false",
     "bool",     "NULL",   "M_PI",     "EOF"});

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// in0, out1, t12, v3: names of buffers and values.
bool LooksLikeOurs(std::string_view name) {
  for (std::string_view prefix : {"in", "out", "t", "v"}) {
    if (name.starts_with(prefix) && name.size() > prefix.size() &&
        std::ranges::all_of(name.substr(prefix.size()), IsDigit)) {
      return true;
    }
  }
  return false;
}

std::string IdentifierFrom(std::string_view name) {
  std::string id;
  for (char c : name) id += IsLetter(c) || IsDigit(c) ? c : '_';
  // A name may not start with an underscore, as many such names belong to the compiler. It needs a
  // lower-case letter, as the included headers define no macro in lower case.
  const bool free =
      !id.empty() && IsLetter(id[0]) && !LooksLikeOurs(id) &&
      std::ranges::find(kReserved, id) == kReserved.end() &&
      std::ranges::find(kMathFunctions, id, &MathFunction::name) == std::end(kMathFunctions) &&
      std::ranges::any_of(id, [](char c) { return c >= 'a' && c <= 'z'; });
  return free ? id : "dim_" + id;
}

}  // namespace

CNames::CNames(const looptree::Program& program) {
  for (const looptree::Dim& dim : program.dims) dims_.push_back(IdentifierFrom(dim.name));
}

const std::string& CNames::Named(looptree::DimId dim, const std::string& suffix) {
  const auto [at, added] = named_.try_emplace({dim, suffix});
  if (!added) return at->second;
  const std::string wanted = dims_[dim] + suffix;
  std::string name = wanted;
  for (int i = 2; !taken_.insert(name).second; ++i) name = fmt::format("{}_x{}", wanted, i);
  at->second = std::move(name);
  return at->second;
}

const std::string& CNames::Offset(looptree::DimId dim, std::uint32_t depth) {
  return Named(dim, depth == 0 ? "" : fmt::format("_{}", depth));
}

const std::string& CNames::InitOffset(looptree::DimId dim) { return Named(dim, "_init"); }

const std::string& CNames::Left(looptree::DimId dim, std::uint32_t depth) {
  return Named(dim, depth == 0 ? "_left" : fmt::format("_{}_left", depth));
}

std::string_view MathFunctionOf(Op op) {
  const auto* const function = std::ranges::find(kMathFunctions, op, &MathFunction::op);
  return function == std::end(kMathFunctions) ? std::string_view() : function->name;
}

std::string InComment(std::string_view text) {
  std::string safe;
  for (char c : text) {
    if (c != '\n' && (c < ' ' || c > '~')) c = '?';
    const char before = safe.empty() ? ' ' : safe.back();
    const bool joins =
        (before == '*' && c == '/') || (before == '/' && c == '*') || (before == '?' && c == '?');
    if (joins) safe += ' ';
    safe += c;
  }
  return safe;
}

}  // namespace loopfleet::worker
