#include "worker/evaluation/job_rebuild.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

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

}  // namespace

std::expected<looptree::Replayed, Failure> RebuildJob(const JobSpec& spec, const JobLimits& limits,
                                                      Evaluation& evaluation) {
  const auto fail = [](FailureCode code, std::string message) {
    return std::unexpected(Failure{.code = code, .message = std::move(message)});
  };
  if (std::optional<Failure> failure = ValidateSpec(spec)) {
    return std::unexpected(*std::move(failure));
  }
  if (spec.threads > limits.max_threads) {
    return fail(FailureCode::kNoMatchingWorker,
                fmt::format("the job asks for {} threads; this worker gives a kernel {}",
                            spec.threads, limits.max_threads));
  }
  evaluation.conditions->threads = spec.threads;
  evaluation.conditions->cache = spec.cache;
  LF_TRY(looptree::Replayed replayed, ReplayJob(spec));
  evaluation.tree_key = looptree::KeyOf(replayed.tree);
  evaluation.flop_count = looptree::FlopCount(replayed.tree.program());
  LF_TRY(const Placement placement,
         PlaceJob(spec.device, replayed.benchmark.target, evaluation.flop_count));
  if (std::optional<Failure> failure = WrongDevice(placement, limits.device)) {
    return std::unexpected(*std::move(failure));
  }
  if (const std::uint64_t bytes = looptree::TensorBytes(replayed.tree.program());
      bytes > limits.max_tensor_bytes) {
    return fail(FailureCode::kRunOom,
                fmt::format("inputs and outputs take {} bytes, this worker allows {}", bytes,
                            limits.max_tensor_bytes));
  }
  return replayed;
}

}  // namespace loopfleet::worker
