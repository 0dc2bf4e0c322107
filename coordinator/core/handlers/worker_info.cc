#include "coordinator/core/handlers/worker_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

namespace loopfleet::coordinator {
namespace {

std::uint32_t Milliseconds(Nanos duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(ms, 0, UINT32_MAX));
}

// A worker of an older minor version gets none of the jobs that use what it does not know.
std::string OutdatedText(const wire::ProtocolVersion& version) {
  if (version >= wire::kProtocolVersion) return {};
  return fmt::format("it speaks protocol {}.{}, the coordinator {}.{}", version.major,
                     version.minor, wire::kProtocolVersion.major, wire::kProtocolVersion.minor);
}

}  // namespace

wire::WorkerInfo WorkerInfoOf(const Worker& worker, Instant now) {
  const Quarantine quarantine = QuarantineOf(worker);
  return {.worker = worker.id(),
          .name = worker.facts.name,
          .state = worker.state,
          .pid = worker.facts.pid,
          .slots = worker.facts.slots,
          .leased_jobs = static_cast<std::uint32_t>(worker.running.size()),
          .finished_jobs = worker.finished_jobs,
          .since_heartbeat_ms = Milliseconds(now - worker.heard_at),
          .http = worker.facts.http,
          .hardware = worker.facts.hardware,
          .compiler = worker.facts.compiler,
          .max_threads = worker.facts.max_threads,
          .canary_ratio = worker.canary_ratio,
          .labels = {worker.labels.begin(), worker.labels.end()},
          .drain = worker.drain,
          .quarantine = QuarantineText(quarantine),
          .quarantine_cause = quarantine.cause,
          .quarantined_ms = quarantine ? Milliseconds(now - worker.quarantined_at) : 0,
          .hindrances = worker.facts.hindrances,
          .outdated = OutdatedText(worker.facts.version)};
}

wire::WorkerInfo WorkerHealthOf(const Worker& worker) {
  const Quarantine quarantine = QuarantineOf(worker);
  return {.worker = worker.id(),
          .name = worker.facts.name,
          .state = worker.state,
          .drain = worker.drain,
          .quarantine = QuarantineText(quarantine),
          .quarantine_cause = quarantine.cause,
          .outdated = OutdatedText(worker.facts.version)};
}

}  // namespace loopfleet::coordinator
