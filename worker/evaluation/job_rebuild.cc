#include "worker/evaluation/job_rebuild.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "common/base/counted.h"
#include "common/base/result.h"
#include "common/job/loop_schedule.h"
#include "common/job/task.h"
#include "common/looptree/tree/key.h"

namespace loopfleet::worker {
namespace {

std::optional<Failure> WrongDevice(Placement placement, DeviceKind device) {
  if (placement == Placement::kCuda && device != DeviceKind::kCuda) {
    return Failure{.code = FailureCode::kNoMatchingWorker,
                   .message = "the job asks for a CUDA device; this worker has a CPU only"};
  }
  if (placement == Placement::kCpu && device != DeviceKind::kCpu) {
    return Failure{.code = FailureCode::kNoMatchingWorker,
                   .message = "the job asks for a CPU; this worker runs kernels on a GPU only"};
  }
  return std::nullopt;
}

std::unexpected<Failure> Fail(FailureCode code, std::string message) {
  return std::unexpected(Failure{.code = code, .message = std::move(message)});
}

std::expected<void, Failure> CheckConditions(const JobSpec& spec, const JobLimits& limits,
                                             Conditions& conditions) {
  if (std::optional<Failure> failure = ValidateJob(spec)) {
    return std::unexpected(*std::move(failure));
  }
  if (spec.threads > limits.max_threads) {
    return Fail(FailureCode::kNoMatchingWorker,
                fmt::format("the job asks for {}; this worker gives a kernel {}",
                            Counted(spec.threads, "thread", "threads"), limits.max_threads));
  }
  conditions.threads = spec.threads;
  conditions.cache = spec.cache;
  return {};
}

}  // namespace

std::expected<void, Failure> ResolveJob(const JobSpec& spec, const JobLimits& limits,
                                        Evaluation& evaluation) {
  LF_TRY_VOID(CheckConditions(spec, limits, *evaluation.conditions));
  LF_TRY(const ResolvedTask resolved, TaskOf(spec).resolve(spec));
  evaluation.subject = resolved.subject;
  if (auto failure = WrongDevice(resolved.placement, limits.device)) {
    return std::unexpected(*std::move(failure));
  }
  return {};
}

std::expected<looptree::Replayed, Failure> RebuildJob(const JobSpec& spec, const JobLimits& limits,
                                                      Evaluation& evaluation) {
  const bool is_profile = spec.profile != ProfileLevel::kNone;
  if (is_profile) {
    LF_TRY_VOID(ResolveJob(spec, limits, evaluation));
  } else {
    LF_TRY_VOID(CheckConditions(spec, limits, *evaluation.conditions));
  }
  LF_TRY(looptree::Replayed replayed, ReplayJob(spec));
  const std::uint64_t flop_count = looptree::FlopCount(replayed.tree.program());
  if (!is_profile) {
    evaluation.subject = looptree::KeyOf(replayed.tree);
    evaluation.flop_count = flop_count;
  }
  LF_TRY(const Placement placement, PlaceJob(spec.device, replayed.benchmark.target, flop_count));
  if (std::optional<Failure> failure = WrongDevice(placement, limits.device)) {
    return std::unexpected(*std::move(failure));
  }
  if (const std::uint64_t bytes = looptree::TensorBytes(replayed.tree.program());
      bytes > limits.max_tensor_bytes) {
    return Fail(FailureCode::kRunOom,
                fmt::format("inputs and outputs take {} bytes, this worker allows {}", bytes,
                            limits.max_tensor_bytes));
  }
  return replayed;
}

}  // namespace loopfleet::worker
