#pragma once
// Failure: why a job has no measurement, or why a request was refused. One table gives each code
// its name, its advice and its policy. A failed job has no time and no flops value: never 0, never
// 1e10.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/looptree/program/rejection.h"

namespace loopfleet {

// The numbers are on the wire and in databases: never reuse or reorder, only add.
enum class FailureCode : std::uint16_t {
  kInvalidBenchmark = 1,
  kInvalidAction = 2,
  kLimitActions = 3,
  kLimitTree = 4,
  kLimitFootprint = 5,
  kLimitFlops = 6,
  kLimitUnroll = 7,
  kQuotaExceeded = 8,
  kBusy = 9,
  kUnauthenticated = 10,
  kForbidden = 11,
  kVersionMismatch = 12,
  kMalformed = 13,
  kUnsupported = 14,
  kDuplicateIdConflict = 15,
  kNoMatchingWorker = 16,
  kCompileError = 17,
  kCompileTimeout = 18,
  kCompileOom = 19,
  kRunTimeout = 20,
  kRunCrash = 21,
  kRunOom = 22,
  kSandboxViolation = 23,
  kWrongOutput = 24,
  kUnstableTiming = 25,
  kCut = 26,
  kWorkerLost = 27,
  kWorkerCrashed = 28,
  kDeviceFault = 29,
  kExpired = 30,
  kCancelled = 31,
  kStorageFull = 32,
  kStorageCorrupt = 33,
  kShuttingDown = 34,
  kNotFound = 35,
};

// Whether the coordinator gives a job that a worker failed with this code to a worker once more.
struct Retry {
  enum class Where : std::uint8_t {
    kRatherElsewhere,  // on another worker if there is one, else on the same
    kOnlyElsewhere,    // on another worker of the hardware class; without one the verdict stands
  };
  static constexpr std::uint32_t kAlways = std::numeric_limits<std::uint32_t>::max();
  // The number of verdicts of this code after which it is the outcome; 1: no retry. Leases are
  // limited by Limits::max_attempts besides.
  std::uint32_t verdicts = 1;
  Where where = Where::kRatherElsewhere;
};

// What follows from a failure.
struct FailurePolicy {
  bool is_retryable = false;  // the same request may succeed later
  // A client repeats the refused request by itself: the load falls, the disk gets room, or the
  // coordinator restarts.
  bool is_passing = false;
  // An outcome answers equal jobs, once enough workers agree (storage::Settles).
  bool answers_equal_jobs = false;
  // It depends on limits, or on how a process ended, and these on the load of the host: its answers
  // age, and it needs more witnesses.
  bool is_circumstantial = false;
  bool depends_on_time = false;  // on how long something took
  Retry retry = {};
};

struct FailureInfo {
  FailureCode code;
  std::string_view name;  // "INVALID_ACTION"
  FailurePolicy policy;
  std::string_view advice;  // what it means and what to do
};

std::span<const FailureInfo> FailureTable();  // every code, in numeric order
const FailureInfo& InfoOf(FailureCode code);
std::optional<FailureCode> FailureCodeOf(std::uint16_t number);
std::optional<FailureCode> ParseFailureCode(std::string_view name);

struct Failure {
  FailureCode code = FailureCode::kUnsupported;
  std::string message;                        // one line, about this case
  std::optional<std::uint32_t> action_index;  // 0-based, if an action caused it
  std::int32_t signal = 0;                    // kRunCrash: signal number; otherwise 0
  friend bool operator==(const Failure&, const Failure&) = default;
};

Failure ToFailure(const looptree::Rejection& rejection);

}  // namespace loopfleet
