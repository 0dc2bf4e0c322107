#include "common/job/failure.h"

#include <array>

#include "common/base/check.h"

namespace loopfleet {
namespace {

using enum FailureCode;

using enum Retry::Where;

constexpr FailurePolicy kFinal{};
constexpr FailurePolicy kLater{.is_retryable = true};
constexpr FailurePolicy kPasses{.is_retryable = true, .is_passing = true};
// This worker is to blame; another one may not be.
constexpr FailurePolicy kOtherWorker{.retry = {Retry::kAlways}};
// The job, in a way that a broken host imitates: a kernel is the same on every worker of a class,
// so two verdicts that disagree tell a faulty host from a faulty kernel, and two that agree settle
// it, for equal jobs, too.
constexpr FailurePolicy kSettledByTwo{.answers_equal_jobs = true, .retry = {2, kOnlyElsewhere}};

// The limits on compiling are in wall time and memory of a host that does other work, too: one
// retry tells a busy moment from a tree that is too large. A busy host has no precise figure, and a
// moment later it may have one. A lost worker or a broken device says nothing of the job: it is
// retried up to the limit of any job.
constexpr std::array kTable = {
    FailureInfo{kInvalidBenchmark, "INVALID_BENCHMARK", kFinal,
                "the benchmark names nothing that can be run: see `loopfleet benchmark list`"},
    FailureInfo{kInvalidAction, "INVALID_ACTION", kFinal,
                "unknown action, or not legal at this point: see action_index"},
    FailureInfo{kLimitActions, "LIMIT_ACTIONS", kFinal,
                "too many actions, or they build too many tree nodes"},
    FailureInfo{kLimitTree, "LIMIT_TREE", kFinal,
                "the loop tree has too many nodes or is too deep"},
    FailureInfo{kLimitFootprint, "LIMIT_FOOTPRINT", kFinal,
                "tensors and scratch need more memory than one job may use"},
    FailureInfo{kLimitFlops, "LIMIT_FLOPS", kFinal,
                "one run is more work than one job may ask for"},
    FailureInfo{kLimitUnroll, "LIMIT_UNROLL", kFinal,
                "unrolling would have made too many loop bodies; not given any more"},
    FailureInfo{kQuotaExceeded, "QUOTA_EXCEEDED", kPasses,
                "this client has too much queued: wait for outcomes, then send more"},
    FailureInfo{kBusy, "BUSY", kPasses, "the coordinator is at a limit: try again later"},
    FailureInfo{kUnauthenticated, "UNAUTHENTICATED", kFinal, "the peer's key is not known here"},
    FailureInfo{kForbidden, "FORBIDDEN", kFinal, "the peer's role does not allow this"},
    FailureInfo{kVersionMismatch, "VERSION_MISMATCH", kOtherWorker,
                "the two sides speak different protocol versions: upgrade the older one"},
    FailureInfo{kMalformed, "MALFORMED", kFinal,
                "not a valid message or job: the error names the invalid part"},
    FailureInfo{kUnsupported, "UNSUPPORTED", kFinal, "well-formed, but this version cannot do it"},
    FailureInfo{kDuplicateIdConflict, "DUPLICATE_ID_CONFLICT", kFinal,
                "this request id was used before with other content: use a fresh one"},
    FailureInfo{kNoMatchingWorker, "NO_MATCHING_WORKER", kLater,
                "no worker of the wanted kind is connected: start one, then submit again"},
    FailureInfo{kCompileError, "COMPILE_ERROR", kSettledByTwo,
                "the compiler refused the loop tree"},
    FailureInfo{kCompileTimeout,
                "COMPILE_TIMEOUT",
                {.answers_equal_jobs = true,
                 .is_circumstantial = true,
                 .depends_on_time = true,
                 .retry = {2, kOnlyElsewhere}},
                "compiling took longer than the limit"},
    FailureInfo{kCompileOom,
                "COMPILE_OOM",
                {.answers_equal_jobs = true, .is_circumstantial = true, .retry = {2}},
                "compiling needed more memory than the limit"},
    FailureInfo{kRunTimeout,
                "RUN_TIMEOUT",
                {.answers_equal_jobs = true, .is_circumstantial = true, .depends_on_time = true},
                "the kernel ran longer than the limit"},
    FailureInfo{kRunCrash, "RUN_CRASH", kSettledByTwo, "a signal killed the kernel"},
    FailureInfo{kRunOom,
                "RUN_OOM",
                {.answers_equal_jobs = true, .is_circumstantial = true, .retry = {2}},
                "the kernel needed more memory than the limit"},
    FailureInfo{kSandboxViolation, "SANDBOX_VIOLATION", kSettledByTwo,
                "the kernel tried something that the sandbox forbids"},
    FailureInfo{kWrongOutput, "WRONG_OUTPUT", kSettledByTwo,
                "the kernel's output differs from the reference; it was not timed"},
    FailureInfo{kUnstableTiming,
                "UNSTABLE_TIMING",
                {.is_retryable = true, .retry = {3}},
                "the machine was too noisy for the wanted precision"},
    FailureInfo{kCut,
                "CUT",
                {.answers_equal_jobs = true, .depends_on_time = true},
                "slower than cut_above_ns: censored, no time is known"},
    FailureInfo{kWorkerLost,
                "WORKER_LOST",
                {.is_retryable = true,
                 .answers_equal_jobs = true,
                 .is_circumstantial = true,
                 .retry = {Retry::kAlways}},
                "every worker that ran the job was lost"},
    FailureInfo{kWorkerCrashed,
                "WORKER_CRASHED",
                {.answers_equal_jobs = true, .is_circumstantial = true, .retry = {Retry::kAlways}},
                "the job crashed every worker that ran it"},
    FailureInfo{kDeviceFault,
                "DEVICE_FAULT",
                {.is_retryable = true, .retry = {Retry::kAlways}},
                "the device failed while the job ran"},
    FailureInfo{kExpired, "EXPIRED", kLater, "the job's deadline passed before it finished"},
    FailureInfo{kCancelled, "CANCELLED", kFinal, "the batch was cancelled"},
    FailureInfo{kStorageFull, "STORAGE_FULL", kPasses, "the coordinator's disk is full"},
    FailureInfo{kStorageCorrupt, "STORAGE_CORRUPT", kFinal,
                "a stored row is damaged: see `loopfleet db check`"},
    FailureInfo{kShuttingDown, "SHUTTING_DOWN", kPasses,
                "the coordinator is shutting down: try again"},
    FailureInfo{kNotFound, "NOT_FOUND", kFinal,
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
