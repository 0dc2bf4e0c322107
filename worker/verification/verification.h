#pragma once
// Verification: compares the outputs of a kernel with the reference.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace loopfleet::worker {

// A quiet NaN with a distinctive payload. Everything that a kernel may write starts out as this, so
// an element that was never written, or was computed from one, shows.
inline constexpr std::uint32_t kPoisonBits = 0x7fc0dead;

void Poison(std::span<std::byte> bytes);  // a multiple of 4 bytes
bool IsAllPoison(std::span<const std::byte> bytes);

// What one output must be. Owns no memory. Without `tolerance` the comparison is exact.
struct ExpectedTensor {
  std::span<const float> rounded;     // values rounded to float32
  std::span<const double> values;     // empty if the comparison is exact
  std::span<const double> tolerance;  // per element; 0: exact
};

struct Mismatch {
  std::size_t element = 0;
  float got = 0;
  double expected = 0;
  double tolerance = 0;
};

// The first wrong element. Poison is always wrong. If the reference is NaN, any other NaN is right.
// If it is infinite, or beyond float32, only the infinity of its sign is right. If the tolerance is
// infinite, only the rounded value is right; ComputeReference refuses programs for which that could
// fail a correct kernel.
std::optional<Mismatch> Compare(std::span<const float> got, const ExpectedTensor& expected);

// "output 0, element 17: got nan (never written), expected 12"
std::string Describe(std::size_t output, const Mismatch& mismatch);

}  // namespace loopfleet::worker
