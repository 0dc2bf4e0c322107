#pragma once
// Quarantine: why a worker's figures are not trusted, as a value that goes from the worker that
// notices to whoever asks: core, events, status, `job explain`, the page, metrics.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loopfleet {

// Kernels that are always the same, run between jobs (docs/MEASUREMENT.md, "Canaries").
enum class Canary : std::uint8_t { kArithmetic, kSecondCache, kMemory };
inline constexpr std::size_t kCanaries = 3;
std::string_view CanaryName(Canary canary);  // "second cache"

enum class QuarantineCause : std::uint8_t {
  kNone,
  kSomeCanary,  // a worker that does not say which of them drifts
  kArithmeticCanary,
  kSecondCacheCanary,
  kMemoryCanary,
};
inline constexpr std::size_t kQuarantineCauses = 5;
std::string_view QuarantineCauseName(QuarantineCause cause);  // "memory_canary"; "" for none
QuarantineCause CauseOf(Canary canary);

struct Quarantine {
  QuarantineCause cause = QuarantineCause::kNone;
  double canary_ratio = 0;  // time of that canary now to when the worker started

  explicit operator bool() const { return cause != QuarantineCause::kNone; }
  friend bool operator==(const Quarantine&, const Quarantine&) = default;
};
// "its memory canary takes 2.1300 of its time"; "" for none.
std::string QuarantineText(const Quarantine& quarantine);

}  // namespace loopfleet
