#include "worker/verification/verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/base/check.h"

namespace loopfleet::worker {
namespace {

bool IsPoison(float value) { return std::bit_cast<std::uint32_t>(value) == kPoisonBits; }

bool IsRight(float got, double expected, double tolerance) {
  if (IsPoison(got)) return false;
  if (std::isnan(expected)) return std::isnan(got);
  const auto rounded = static_cast<float>(expected);
  if (got == rounded) return true;  // also both infinite, and -0 for 0
  // With an infinite tolerance only the rounded value is right.
  return std::isfinite(tolerance) && std::isfinite(got) && std::isfinite(rounded) &&
         std::abs(static_cast<double>(got) - expected) <= tolerance;
}

// Whether all elements are within their tolerances, and both finite. Quicker than IsRight, as it
// has no branch; most kernels are right.
bool AreAllWithin(std::span<const float> got, const ExpectedTensor& expected) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  bool within = true;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double value = expected.values[i];
    const double tolerance = expected.tolerance[i];
    within &= std::abs(static_cast<double>(got[i]) - value) <= tolerance;
    within &= std::abs(value) <= kLargest && tolerance <= kLargest;
  }
  return within;
}

}  // namespace

void Poison(std::span<std::byte> bytes) {
  LF_CHECK(bytes.size() % sizeof kPoisonBits == 0, "{} bytes", bytes.size());
  auto* const words = reinterpret_cast<std::uint32_t*>(bytes.data());
  std::fill_n(words, bytes.size() / sizeof kPoisonBits, kPoisonBits);
}

bool IsAllPoison(std::span<const std::byte> bytes) {
  const auto* const words = reinterpret_cast<const std::uint32_t*>(bytes.data());
  return std::all_of(words, words + bytes.size() / sizeof kPoisonBits,
                     [](std::uint32_t word) { return word == kPoisonBits; });
}

std::optional<Mismatch> Compare(std::span<const float> got, const ExpectedTensor& expected) {
  LF_CHECK(got.size() == expected.rounded.size(), "{} elements, expected {}", got.size(),
           expected.rounded.size());
  if (std::memcmp(got.data(), expected.rounded.data(), got.size_bytes()) == 0) return std::nullopt;
  const bool exact = expected.tolerance.empty();
  if (!exact && AreAllWithin(got, expected)) return std::nullopt;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double value = exact ? static_cast<double>(expected.rounded[i]) : expected.values[i];
    const double tolerance = exact ? 0 : expected.tolerance[i];
    if (!IsRight(got[i], value, tolerance)) {
      return Mismatch{.element = i, .got = got[i], .expected = value, .tolerance = tolerance};
    }
  }
  return std::nullopt;
}

std::string Describe(std::size_t output, const Mismatch& mismatch) {
  return fmt::format("output {}, element {}: got {}{}, expected {}{}", output, mismatch.element,
                     mismatch.got, IsPoison(mismatch.got) ? " (never written)" : "",
                     mismatch.expected,
                     mismatch.tolerance > 0 ? fmt::format(" +- {:.3g}", mismatch.tolerance) : "");
}

}  // namespace loopfleet::worker
