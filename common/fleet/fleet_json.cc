#include "common/fleet/fleet_json.h"

#include <fmt/chrono.h>

#include <chrono>
#include <string>
#include <utility>

#include "common/fleet/attention.h"

namespace loopfleet {

using wire::BatchState;
using wire::Severity;
using wire::WorkerState;

namespace {

std::tm SecondsOf(WallTime when) {
  return fmt::gmtime(std::chrono::floor<std::chrono::seconds>(when.time_since_epoch()).count());
}

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kNotice: return "notice";
    case Severity::kWarning: return "warning";
    case Severity::kProblem: return "problem";
  }
  return "";
}

Json TextOrNull(std::string text) { return text.empty() ? Json(nullptr) : Json(std::move(text)); }

}  // namespace

std::string_view WorkerStateName(WorkerState state) {
  switch (state) {
    case WorkerState::kReady: return "ready";
    case WorkerState::kDraining: return "draining";
    case WorkerState::kLost: return "lost";
    case WorkerState::kQuarantined: return "quarantined";
  }
  return "";
}

std::string_view BatchStateName(BatchState state) {
  switch (state) {
    case BatchState::kOpen: return "open";
    case BatchState::kRunning: return "running";
    case BatchState::kFinished: return "finished";
    case BatchState::kCancelled: return "cancelled";
  }
  return "";
}

Json AttentionJson(const std::vector<wire::Attention>& attention) {
  Json array = Json::array();
  for (const wire::Attention& item : attention) {
    array.push_back({{"kind", item.kind},
                     {"severity", SeverityName(item.severity)},
                     {"count", item.count},
                     {"sentence", item.sentence}});
  }
  return array;
}

Json DrainJson(const wire::Drain& drain) {
  return Json{{"target", drain.target},
              {"reason", drain.reason},
              {"by", drain.by},
              {"since", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", SecondsOf(drain.since))}};
}

Json WorkerJson(const wire::WorkerInfo& info) {
  return Json{{"worker", info.worker.ToString()},
              {"name", info.name},
              {"state", WorkerStateName(info.state)},
              {"pid", info.pid},
              {"host", info.hardware.host},
              {"device", EnumName(info.hardware.device)},
              {"slots", info.slots},
              {"leased_jobs", info.leased_jobs},
              {"finished_jobs", info.finished_jobs},
              {"since_heartbeat_ms", info.since_heartbeat_ms},
              {"max_threads", info.max_threads},
              {"drain", info.drain ? DrainJson(*info.drain) : Json(nullptr)},
              {"why", TextOrNull(WhyLimited(info))},
              {"outdated", TextOrNull(info.outdated)},
              {"quarantine", TextOrNull(info.quarantine)},
              {"quarantine_cause", info.quarantine_cause == QuarantineCause::kNone
                                       ? Json(nullptr)
                                       : Json(QuarantineCauseName(info.quarantine_cause))},
              {"quarantined_ms", info.quarantined_ms},
              {"labels", info.labels},
              {"canary_ratio", info.canary_ratio > 0 ? Json(info.canary_ratio) : Json(nullptr)},
              {"recent_figures", info.recent_figures},
              {"recent_imprecise", info.recent_imprecise},
              {"hindrances", info.hindrances},
              {"http", TextOrNull(info.http)},
              {"hardware", HardwareJson(info.hardware)},
              {"compiler",
               {{"llvm", info.compiler.llvm},
                {"tier", info.compiler.tier},
                {"revision", info.compiler.revision}}}};
}

Json BatchJson(const wire::BatchInfo& info) {
  return Json{{"batch", info.batch.value},
              {"state", BatchStateName(info.state)},
              {"submitted_at", fmt::format("{:%Y-%m-%d %H:%M:%S}", SecondsOf(info.submitted_at))},
              {"jobs", info.job_count},
              {"finished", info.finished},
              {"failed", info.failed},
              {"from_store", info.from_store},
              {"client", info.client.ToString()},
              {"is_internal", info.client.is_nil()}};
}

}  // namespace loopfleet
