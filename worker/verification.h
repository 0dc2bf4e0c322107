#pragma once
// Whether a kernel computed what its program means.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace loopfleet::worker {

// A quiet NaN with a payload of its own. Everything a kernel may write starts out as this, so an
// element that was left out, or that was made from one that was left out, shows.
inline constexpr std::uint32_t kPoisonBits = 0x7fc0dead;

void Poison(std::span<std::byte> bytes);  // a multiple of 4 bytes
bool IsAllPoison(std::span<const std::byte> bytes);

// What one output must be. Where `tolerance` is empty the comparison is exact.
struct ExpectedTensor {
  ExpectedTensor(std::vector<double> exact_values, std::vector<double> tolerances);

  std::vector<float> rounded;     // to float32
  std::vector<double> values;     // empty where the comparison is exact
  std::vector<double> tolerance;  // per element; 0: exactly
  std::size_t bytes() const;
};

struct Mismatch {
  std::size_t element = 0;
  float got = 0;
  double expected = 0;
  double tolerance = 0;
};

// The first element that is wrong. Rules: the poison is always wrong; where the reference is NaN
// any other NaN is right; where it is infinite, or beyond float32, the infinity of its sign is.
std::optional<Mismatch> Compare(std::span<const float> got, const ExpectedTensor& expected);

// "output 0, element 17: got nan (never written), expected 12"
std::string Describe(std::size_t output, const Mismatch& mismatch);

}  // namespace loopfleet::worker
