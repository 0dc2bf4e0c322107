#include "common/job/failure.h"

#include <array>

#include "common/base/check.h"

namespace loopfleet {
namespace {

using enum FailureCode;

constexpr std::array kTable = {
    FailureInfo{kInvalidBenchmark, "INVALID_BENCHMARK", false,
                "the benchmark names nothing that can be run: see `loopfleet benchmark list`"},
    FailureInfo{kInvalidAction, "INVALID_ACTION", false,
                "unknown action, or not legal at this point: see action_index"},
    FailureInfo{kLimitActions, "LIMIT_ACTIONS", false,
                "too many actions, or they build too many tree nodes"},
    FailureInfo{kLimitTree, "LIMIT_TREE", false, "the loop tree has too many nodes or is too deep"},
    FailureInfo{kLimitFootprint, "LIMIT_FOOTPRINT", false,
                "tensors and scratch need more memory than one job may use"},
    FailureInfo{kLimitFlops, "LIMIT_FLOPS", false, "one run is more work than one job may ask for"},
    FailureInfo{kLimitUnroll, "LIMIT_UNROLL", false,
                "unrolling would have made too many loop bodies; not given any more"},
    FailureInfo{kQuotaExceeded, "QUOTA_EXCEEDED", true,
                "this client has too much queued: wait for outcomes, then send more"},
    FailureInfo{kBusy, "BUSY", true, "the coordinator is at a limit: try again later"},
    FailureInfo{kUnauthenticated, "UNAUTHENTICATED", false, "the peer's key is not known here"},
    FailureInfo{kForbidden, "FORBIDDEN", false, "the peer's role does not allow this"},
    FailureInfo{kVersionMismatch, "VERSION_MISMATCH", false,
                "the two sides speak different protocol versions: upgrade the older one"},
    FailureInfo{kMalformed, "MALFORMED", false, "the bytes are not a message of this protocol"},
    FailureInfo{kUnsupported, "UNSUPPORTED", false, "well-formed, but this version cannot do it"},
    FailureInfo{kDuplicateIdConflict, "DUPLICATE_ID_CONFLICT", false,
                "this request id was used before with other content: use a fresh one"},
    FailureInfo{kNoMatchingWorker, "NO_MATCHING_WORKER", true,
                "no worker of the wanted kind is connected: start one, then submit again"},
    FailureInfo{kCompileError, "COMPILE_ERROR", false, "the compiler refused the loop tree"},
    FailureInfo{kCompileTimeout, "COMPILE_TIMEOUT", false, "compiling took longer than the limit"},
    FailureInfo{kCompileOom, "COMPILE_OOM", false, "compiling needed more memory than the limit"},
    FailureInfo{kRunTimeout, "RUN_TIMEOUT", false, "the kernel ran longer than the limit"},
    FailureInfo{kRunCrash, "RUN_CRASH", false, "a signal killed the kernel"},
    FailureInfo{kRunOom, "RUN_OOM", false, "the kernel needed more memory than the limit"},
    FailureInfo{kSandboxViolation, "SANDBOX_VIOLATION", false,
                "the kernel tried something that the sandbox forbids"},
    FailureInfo{kWrongOutput, "WRONG_OUTPUT", false,
                "the kernel's output differs from the reference; it was not timed"},
    FailureInfo{kUnstableTiming, "UNSTABLE_TIMING", true,
                "the machine was too noisy for the wanted precision"},
    FailureInfo{kCut, "CUT", false, "slower than cut_above_ns: censored, no time is known"},
    FailureInfo{kWorkerLost, "WORKER_LOST", true, "every worker that ran the job was lost"},
    FailureInfo{kWorkerCrashed, "WORKER_CRASHED", false,
                "the job crashed every worker that ran it"},
    FailureInfo{kDeviceFault, "DEVICE_FAULT", true, "the device failed while the job ran"},
    FailureInfo{kExpired, "EXPIRED", true, "the job's deadline passed before it finished"},
    FailureInfo{kCancelled, "CANCELLED", false, "the batch was cancelled"},
    FailureInfo{kStorageFull, "STORAGE_FULL", true, "the coordinator's disk is full"},
    FailureInfo{kStorageCorrupt, "STORAGE_CORRUPT", false,
                "a stored row is damaged: see `loopfleet db check`"},
    FailureInfo{kShuttingDown, "SHUTTING_DOWN", true,
                "the coordinator is shutting down: try again"},
    FailureInfo{kNotFound, "NOT_FOUND", false,
                "there is no such batch or job: see `loopfleet batch list`"},
};

constexpr bool NumbersAreConsecutive() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].code) != i + 1) return false;
  }
  return true;
}
static_assert(NumbersAreConsecutive(), "InfoOf indexes the table by code");

FailureCode CodeOf(looptree::RejectionCode code) {
  switch (code) {
    case looptree::RejectionCode::kInvalidBenchmark: return FailureCode::kInvalidBenchmark;
    case looptree::RejectionCode::kInvalidAction: return FailureCode::kInvalidAction;
    case looptree::RejectionCode::kLimitActions: return FailureCode::kLimitActions;
    case looptree::RejectionCode::kLimitTree: return FailureCode::kLimitTree;
    case looptree::RejectionCode::kLimitFootprint: return FailureCode::kLimitFootprint;
    case looptree::RejectionCode::kLimitFlops: return FailureCode::kLimitFlops;
    case looptree::RejectionCode::kUnsupported: return FailureCode::kUnsupported;
  }
  LF_CHECK(false, "rejection code {}", static_cast<int>(code));
}

}  // namespace

std::span<const FailureInfo> FailureTable() { return kTable; }

const FailureInfo& InfoOf(FailureCode code) {
  const auto index = static_cast<std::size_t>(code) - 1;
  LF_CHECK(index < kTable.size(), "failure code {}", index + 1);
  return kTable[index];
}

std::optional<FailureCode> FailureCodeOf(std::uint16_t number) {
  if (number < 1 || number > kTable.size()) return std::nullopt;
  return static_cast<FailureCode>(number);
}

std::optional<FailureCode> ParseFailureCode(std::string_view name) {
  for (const FailureInfo& info : kTable) {
    if (info.name == name) return info.code;
  }
  return std::nullopt;
}

Failure ToFailure(const looptree::Rejection& rejection) {
  return Failure{.code = CodeOf(rejection.code),
                 .message = rejection.message,
                 .action_index = rejection.action_index};
}

}  // namespace loopfleet
