#pragma once
// Whether a kernel computed what its program means.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace loopfleet::worker {

// A quiet NaN with a payload of its own. Everything a kernel may write starts out as this, so an
// element that was left out, or that was made from one that was left out, shows.
inline constexpr std::uint32_t kPoisonBits = 0x7fc0dead;

void Poison(std::span<std::byte> bytes);  // a multiple of 4 bytes
bool IsAllPoison(std::span<const std::byte> bytes);

// What one output must be; in memory that somebody else owns. Where `tolerance` is empty the
// comparison is exact.
struct ExpectedTensor {
  std::span<const float> rounded;     // to float32
  std::span<const double> values;     // empty where the comparison is exact
  std::span<const double> tolerance;  // per element; 0: exactly
};

struct Mismatch {
  std::size_t element = 0;
  float got = 0;
  double expected = 0;
  double tolerance = 0;
};

// The first element that is wrong. Rules: the poison is always wrong; where the reference is NaN
// any other NaN is right; where it is infinite, or beyond float32, only the infinity of its sign.
// Of elements of which nothing is promised (their tolerance is infinite) only the rounded value is
// right: where that could blame a right kernel, no workload is made (ComputeReference).
std::optional<Mismatch> Compare(std::span<const float> got, const ExpectedTensor& expected);

// "output 0, element 17: got nan (never written), expected 12"
std::string Describe(std::size_t output, const Mismatch& mismatch);

}  // namespace loopfleet::worker
