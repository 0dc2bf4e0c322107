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

wire::WorkerInfo WorkerHealthOf(const Worker& worker) {
  const Quarantine quarantine = QuarantineOf(worker);
  return {.worker = worker.id(),
          .name = worker.facts.name,
          .state = worker.state,
          .drain = worker.drain,
          .quarantine = QuarantineText(quarantine),
          .quarantine_cause = quarantine.cause,
          .outdated = OutdatedText(worker.facts.version),
          .recent_figures = worker.recent_grades.figures(),
          .recent_imprecise = worker.recent_grades.imprecise()};
}

wire::WorkerInfo WorkerInfoOf(const Worker& worker, Instant now) {
  wire::WorkerInfo info = WorkerHealthOf(worker);
  info.pid = worker.facts.pid;
  info.slots = worker.facts.slots;
  info.leased_jobs = static_cast<std::uint32_t>(worker.running.size());
  info.finished_jobs = worker.finished_jobs;
  info.since_heartbeat_ms = Milliseconds(now - worker.heard_at);
  info.http = worker.facts.http;
  info.hardware = worker.facts.hardware;
  info.compiler = worker.facts.compiler;
  info.max_threads = worker.facts.max_threads;
  info.canary_ratio = worker.canary_ratio;
  info.labels.assign(worker.labels.begin(), worker.labels.end());
  if (QuarantineOf(worker)) info.quarantined_ms = Milliseconds(now - worker.quarantined_at);
  info.hindrances = worker.facts.hindrances;
  return info;
}

}  // namespace loopfleet::coordinator
