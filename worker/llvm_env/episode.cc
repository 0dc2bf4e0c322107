#include "worker/llvm_env/episode.h"

#include "common/base/check.h"

namespace loopfleet::worker {
namespace {

FailureCode CodeOf(PassFailure::Reason reason) {
  using enum PassFailure::Reason;
  switch (reason) {
    case kUnknownPass: return FailureCode::kInvalidAction;
    case kCrashed:
    case kBrokeModule:
    case kNoValue: return FailureCode::kCompileError;
    case kTimeout: return FailureCode::kCompileTimeout;
    case kOutOfMemory:
    case kModuleTooLarge: return FailureCode::kCompileOom;
    case kForbiddenCall: return FailureCode::kSandboxViolation;
    case kNoProcess: return FailureCode::kDeviceFault;
  }
  LF_CHECK(false, "reason {}", static_cast<int>(reason));
}

std::string_view PrefixOf(PassFailure::Reason reason) {
  if (reason == PassFailure::Reason::kCrashed) return "PASS_CRASHED: ";
  if (reason == PassFailure::Reason::kBrokeModule) return "PASS_BROKE_MODULE: ";
  return "";
}

}  // namespace

Failure ToFailure(const PassFailure& failure) {
  return {.code = CodeOf(failure.reason),
          .message = std::string(PrefixOf(failure.reason)) + failure.message,
          .action_index = failure.pass_index,
          .signal = failure.signal};
}

}  // namespace loopfleet::worker
