#include "worker/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/looptree/key.h"
#include "worker/code_hash.h"

namespace loopfleet::worker {
namespace {

std::optional<Failure> WrongDevice(const JobSpec& spec, const looptree::Benchmark& benchmark) {
  if (PlacementOf(spec.device, benchmark.target) != Placement::kCuda) return std::nullopt;
  return Failure{.code = FailureCode::kNoMatchingWorker,
                 .message = "the job asks for a CUDA device; this worker has a CPU only"};
}

}  // namespace

Pipeline::Pipeline(const Options& options, const Parts& parts, Conditions conditions,
                   std::function<void()> on_finished)
    : options_(options),
      parts_(parts),
      conditions_(std::move(conditions)),
      on_finished_(std::move(on_finished)),
      workloads_(options.workloads),
      prepared_(options.max_prepared),
      prepare_thread_([this] { PrepareLoop(); }),
      time_thread_([this] { TimeLoop(); }) {}

Pipeline::~Pipeline() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting_.clear();
    held_.clear();
    changed_.notify_all();
  }
  parts_.slot.Stop();
  prepared_.Close();
  prepare_thread_.join();
  time_thread_.join();
}

bool Pipeline::Accept(wire::Lease lease) {
  std::lock_guard lock(mutex_);
  if (held_.size() >= options_.max_held) return false;
  if (!held_.emplace(lease.lease, lease.job).second) return true;  // sent twice: it is under way
  waiting_.push_back({std::move(lease), parts_.clock.Now()});
  changed_.notify_all();
  return true;
}

void Pipeline::Drop(std::span<const LeaseId> leases) {
  std::lock_guard lock(mutex_);
  for (const LeaseId lease : leases) {
    held_.erase(lease);
    std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.lease.lease == lease; });
    std::erase_if(finished_, [&](const wire::Report& report) { return report.lease == lease; });
  }
}

std::vector<LeaseId> Pipeline::DropUnstarted() {
  std::lock_guard lock(mutex_);
  waiting_.clear();
  std::vector<LeaseId> dropped;
  for (const auto& [lease, job] : held_) {
    const bool is_finished = std::any_of(finished_.begin(), finished_.end(),
                                         [&](const auto& report) { return report.lease == lease; });
    if (lease != timing_ && !is_finished) dropped.push_back(lease);
  }
  for (const LeaseId lease : dropped) held_.erase(lease);
  return dropped;
}

std::vector<wire::Report> Pipeline::TakeFinished() {
  std::lock_guard lock(mutex_);
  for (const wire::Report& report : finished_) held_.erase(report.lease);
  return std::exchange(finished_, {});
}

std::vector<wire::HeldLease> Pipeline::Held() const {
  std::lock_guard lock(mutex_);
  std::vector<wire::HeldLease> held;
  for (const auto& [lease, job] : held_) held.push_back({.lease = lease, .job = job});
  return held;
}

bool Pipeline::IsHeld(LeaseId lease) const {
  std::lock_guard lock(mutex_);
  return held_.contains(lease);
}

std::optional<Pipeline::Waiting> Pipeline::NextWaiting() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
  if (stopping_) return std::nullopt;
  Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  return next;
}

void Pipeline::PrepareLoop() {
  while (std::optional<Waiting> next = NextWaiting()) {
    Evaluation evaluation;
    evaluation.conditions = conditions_;
    evaluation.stages[Stage::kQueue] = parts_.clock.Now() - next->accepted_at;
    std::optional<Prepared> prepared = Prepare(next->lease, evaluation);
    if (!prepared) {
      Finish(next->lease.lease, next->lease.job, std::move(evaluation));
    } else if (IsHeld(prepared->lease)) {
      prepared_.Push(*std::move(prepared));
    }
  }
}

std::optional<Pipeline::Prepared> Pipeline::Prepare(const wire::Lease& lease,
                                                    Evaluation& evaluation) {
  const auto fail = [&](Failure failure) {
    evaluation.verdict = std::move(failure);
    return std::nullopt;
  };
  const Instant start = parts_.clock.Now();
  if (std::optional<Failure> failure = UnsupportedField(lease.spec)) return fail(*failure);
  const std::expected<looptree::Replayed, Failure> replayed = ReplayJob(lease.spec);
  if (!replayed) return fail(replayed.error());
  evaluation.tree_key = looptree::KeyOf(replayed->tree);
  evaluation.flop_count = looptree::FlopCount(replayed->tree.program());
  if (std::optional<Failure> failure = WrongDevice(lease.spec, replayed->benchmark)) {
    return fail(*std::move(failure));
  }
  if (const std::uint64_t bytes = looptree::TensorBytes(replayed->tree.program());
      bytes > options_.max_tensor_bytes) {
    return fail({.code = FailureCode::kRunOom,
                 .message = fmt::format("inputs and outputs take {} bytes, this worker allows {}",
                                        bytes, options_.max_tensor_bytes)});
  }
  if (evaluation.flop_count > options_.max_flop_count) {
    return fail({.code = FailureCode::kLimitFlops,
                 .message = fmt::format("one run is {} flop; this worker verifies outputs, and so"
                                        " takes jobs, up to {}",
                                        evaluation.flop_count, options_.max_flop_count)});
  }
  const Instant rebuilt = parts_.clock.Now();
  evaluation.stages[Stage::kReplay] = rebuilt - start;

  std::expected<Kernel, Failure> kernel = parts_.compiler.Compile(replayed->tree);
  const Instant compiled = parts_.clock.Now();
  evaluation.stages[Stage::kCompile] = compiled - rebuilt;
  if (!kernel) return fail(std::move(kernel).error());
  evaluation.scratch_bytes = kernel->scratch_bytes;
  evaluation.no_effect = kernel->no_effect;
  evaluation.code_hash = CodeHash(kernel->object);

  Result<std::shared_ptr<const Workload>> workload = workloads_.Get(replayed->tree.program());
  if (!workload) {
    return fail({.code = FailureCode::kRunOom, .message = std::move(workload).error().message});
  }
  const Instant done = parts_.clock.Now();
  evaluation.stages[Stage::kVerify] = done - compiled;
  return Prepared{.lease = lease.lease,
                  .job = lease.job,
                  .evaluation = std::move(evaluation),
                  .kernel = *std::move(kernel),
                  .workload = *std::move(workload),
                  .prepared_at = done};
}

bool Pipeline::StartTiming(LeaseId lease) {
  std::lock_guard lock(mutex_);
  if (!held_.contains(lease)) return false;
  timing_ = lease;
  return true;
}

void Pipeline::TimeLoop() {
  while (std::optional<Prepared> next = prepared_.Pop()) {
    if (!StartTiming(next->lease)) continue;
    Evaluation evaluation = std::move(next->evaluation);
    evaluation.stages[Stage::kQueue] += parts_.clock.Now() - next->prepared_at;
    auto measured = parts_.slot.Evaluate(next->kernel, next->workload, evaluation.stages);
    if (measured) {
      evaluation.verdict = *std::move(measured);
    } else {
      evaluation.verdict = std::move(measured).error();
    }
    Finish(next->lease, next->job, std::move(evaluation));
  }
}

void Pipeline::Finish(LeaseId lease, JobId job, Evaluation evaluation) {
  Count(evaluation);
  if (!evaluation.ok()) {
    log::Info("job.failed job={} lease={} code={} message=\"{}\"", job, lease,
              OutcomeLabel(evaluation), evaluation.failure().message);
  }
  {
    std::lock_guard lock(mutex_);
    if (timing_ == lease) timing_ = {};
    if (!held_.contains(lease)) return;  // dropped meanwhile: nobody wants it
    finished_.push_back({.lease = lease, .job = job, .evaluation = std::move(evaluation)});
  }
  on_finished_();
}

void Pipeline::Count(const Evaluation& evaluation) {
  parts_.metrics.JobCompleted(OutcomeLabel(evaluation));
  for (const Stage stage : {Stage::kReplay, Stage::kCompile, Stage::kVerify, Stage::kMeasure}) {
    const Nanos took = evaluation.stages[stage];
    if (took > Nanos{0}) parts_.metrics.StageTook(StageName(stage), took);
  }
}

}  // namespace loopfleet::worker
