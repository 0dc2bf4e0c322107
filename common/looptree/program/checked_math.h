#pragma once
// Arithmetic on untrusted sizes: nullopt if the result does not fit in 64 bits.

#include <cstdint>
#include <optional>

namespace loopfleet::looptree {

inline std::optional<std::int64_t> CheckedMultiply(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

inline std::optional<std::int64_t> CheckedAdd(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// a * b + c: the elements that a loop of size a and tail c covers over an inner range of b.
inline std::optional<std::int64_t> CheckedMultiplyAdd(std::int64_t a, std::int64_t b,
                                                      std::int64_t c) {
  const auto product = CheckedMultiply(a, b);
  return product ? CheckedAdd(*product, c) : std::nullopt;
}

}  // namespace loopfleet::looptree
