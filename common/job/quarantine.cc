#include "common/job/quarantine.h"

#include <fmt/format.h>

#include "common/base/check.h"

namespace loopfleet {

std::string_view CanaryName(Canary canary) {
  switch (canary) {
    case Canary::kArithmetic: return "arithmetic";
    case Canary::kSecondCache: return "second cache";
    case Canary::kMemory: return "memory";
  }
  LF_CHECK(false, "canary {}", static_cast<int>(canary));
}

std::string_view QuarantineCauseName(QuarantineCause cause) {
  switch (cause) {
    case QuarantineCause::kNone: return "";
    case QuarantineCause::kUnspecifiedCanary: return "some_canary";
    case QuarantineCause::kArithmeticCanary: return "arithmetic_canary";
    case QuarantineCause::kSecondCacheCanary: return "second_cache_canary";
    case QuarantineCause::kMemoryCanary: return "memory_canary";
  }
  LF_CHECK(false, "quarantine cause {}", static_cast<int>(cause));
}

QuarantineCause CauseOf(Canary canary) {
  switch (canary) {
    case Canary::kArithmetic: return QuarantineCause::kArithmeticCanary;
    case Canary::kSecondCache: return QuarantineCause::kSecondCacheCanary;
    case Canary::kMemory: return QuarantineCause::kMemoryCanary;
  }
  LF_CHECK(false, "canary {}", static_cast<int>(canary));
}

std::string QuarantineText(const Quarantine& quarantine) {
  const auto took = [&](std::string_view canaries) {
    return fmt::format("its {} take {:.4f} of their time at start", canaries,
                       quarantine.canary_ratio);
  };
  switch (quarantine.cause) {
    case QuarantineCause::kNone: return {};
    case QuarantineCause::kUnspecifiedCanary: return took("canaries");
    case QuarantineCause::kArithmeticCanary: return took("canaries of arithmetic");
    case QuarantineCause::kSecondCacheCanary: return took("canaries of the second cache");
    case QuarantineCause::kMemoryCanary: return took("canaries of memory");
  }
  LF_CHECK(false, "quarantine cause {}", static_cast<int>(quarantine.cause));
}

}  // namespace loopfleet
