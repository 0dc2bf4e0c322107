#pragma once
// Quarantine: why a worker's figures are not trusted. The worker reports it; the core, events,
// status, `job explain`, the page and metrics show it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loopfleet {

// The fixed kernels that a worker runs between jobs (docs/MEASUREMENT.md, "Canaries").
enum class Canary : std::uint8_t { kArithmetic, kSecondCache, kMemory };
inline constexpr std::size_t kCanaries = 3;
std::string_view CanaryName(Canary canary);  // "second cache"

enum class QuarantineCause : std::uint8_t {
  kNone,
  kUnspecifiedCanary,  // the worker does not say which canary drifts
  kArithmeticCanary,
  kSecondCacheCanary,
  kMemoryCanary,
};
inline constexpr std::size_t kQuarantineCauses = 5;
std::string_view QuarantineCauseName(QuarantineCause cause);  // "memory_canary"; "" for none
QuarantineCause CauseOf(Canary canary);

struct Quarantine {
  QuarantineCause cause = QuarantineCause::kNone;
  double canary_ratio = 0;  // time of the drifting canary now over its time at start

  explicit operator bool() const { return cause != QuarantineCause::kNone; }
  friend bool operator==(const Quarantine&, const Quarantine&) = default;
};
// "its canaries of memory take 2.1300 of their time at start"; "" for none.
std::string QuarantineText(const Quarantine& quarantine);

}  // namespace loopfleet
