#include "worker/evaluation/lease_desk.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"

namespace loopfleet::worker {

LeaseDesk::LeaseDesk(std::size_t max_held, monitoring::WorkerMetrics& metrics, const Clock& clock,
                     std::function<void()> on_output)
    : metrics_(metrics),
      clock_(clock),
      on_output_(std::move(on_output)),
      leases_(max_held),
      account_(leases_, metrics, clock) {}

bool LeaseDesk::Accept(wire::Lease lease) {
  const bool accepted = leases_.Accept(std::move(lease), clock_.Now());
  account_.ShowHeld();
  return accepted;
}

void LeaseDesk::Drop(std::span<const LeaseId> leases) {
  leases_.Drop(leases);
  account_.ShowHeld();
}

std::vector<LeaseId> LeaseDesk::DropUnstarted() {
  std::vector<LeaseId> dropped = leases_.DropUnstarted();
  account_.ShowHeld();
  return dropped;
}

std::vector<LeaseId> LeaseDesk::GiveBack(std::span<const LeaseId> leases) {
  std::vector<LeaseId> dropped = leases_.GiveBack(leases);
  account_.ShowHeld();
  return dropped;
}

void LeaseDesk::CountSamples(const Samples& samples) {
  const auto accepted =
      static_cast<std::uint64_t>(std::ranges::count(samples.flags, std::uint8_t{kSampleAccepted}));
  metrics_.SamplesTaken(accepted, samples.ns.size() - accepted);
  constexpr double kHertzPerMhz = 1e6;
  metrics_.SetClock(samples.clock_after_mhz * kHertzPerMhz);
}

void LeaseDesk::Finish(LeaseId lease, JobId job, Evaluation evaluation) {
  metrics_.JobCompleted(OutcomeLabel(evaluation));
  for (const Stage stage : {Stage::kReplay, Stage::kCompile, Stage::kVerify, Stage::kMeasure}) {
    const Nanos took = evaluation.stages[stage];
    if (took > Nanos{0}) metrics_.StageTook(StageName(stage), took);
  }
  if (!evaluation.ok()) {
    log::Info("job.failed job={} lease={} code={} message=\"{}\"", job, lease,
              OutcomeLabel(evaluation), evaluation.failure().message);
  }
  const bool is_wanted =
      leases_.Finish({.lease = lease, .job = job, .evaluation = std::move(evaluation)});
  account_.ShowHeld();
  if (is_wanted) on_output_();
}

}  // namespace loopfleet::worker
