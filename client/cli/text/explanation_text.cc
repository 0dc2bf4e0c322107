#include "client/cli/text/explanation_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "client/cli/text/table.h"
#include "common/base/counted.h"
#include "common/base/printable.h"
#include "common/fleet/fleet_json.h"

namespace loopfleet::client {
namespace {

double Seconds(std::uint64_t ms) { return static_cast<double>(ms) / 1e3; }

// Why the worker cannot run the job now, or "matches".
std::string FitText(const wire::WorkerFit& fit) {
  std::vector<std::string> parts;
  if (fit.other_device) parts.emplace_back("another device");
  if (fit.max_threads > 0)
    parts.push_back(
        fmt::format("gives a kernel {}", Counted(fit.max_threads, "thread", "threads")));
  if (!fit.missing_labels.empty()) {
    parts.push_back(fmt::format("lacks {}", fmt::join(fit.missing_labels, ", ")));
  }
  if (fit.other_affinity) parts.emplace_back("the affinity is another worker's");
  if (parts.empty()) {
    parts.emplace_back(!fit.connected                  ? "matches, not connected"
                       : fit.leased_jobs >= fit.credit ? "matches, full"
                                                       : "matches");
  }
  if (!fit.quarantine.empty()) parts.push_back(fit.quarantine);
  return fmt::format("{}", fmt::join(parts, "; "));
}

Json FitJson(const wire::WorkerFit& fit) {
  return Json{{"name", fit.name},
              {"matches", fit.matches()},
              {"state", WorkerStateName(fit.state)},
              {"connected", fit.connected},
              {"leased_jobs", fit.leased_jobs},
              {"credit", fit.credit},
              {"full", fit.leased_jobs >= fit.credit},
              {"other_device", fit.other_device},
              {"max_threads", fit.max_threads > 0 ? Json(fit.max_threads) : Json(nullptr)},
              {"missing_labels", fit.missing_labels},
              {"other_affinity", fit.other_affinity},
              {"quarantine", fit.quarantine.empty() ? Json(nullptr) : Json(fit.quarantine)}};
}

std::string WorkersText(const wire::JobExplanation& explanation) {
  if (explanation.workers.empty()) return "";
  Table table({"WORKER", "STATE", "LEASED", "CREDIT", "FOR THIS JOB"});
  for (const wire::WorkerFit& fit : explanation.workers) {
    table.Add({fit.name, std::string(WorkerStateName(fit.state)), std::to_string(fit.leased_jobs),
               std::to_string(fit.credit), FitText(fit)});
  }
  std::string text = table.Text();
  if (explanation.more_workers > 0) {
    text +=
        fmt::format("and {}\n", Counted(explanation.more_workers, "more worker", "more workers"));
  }
  return text;
}

}  // namespace

std::string_view JobStateName(wire::JobState state) {
  switch (state) {
    case wire::JobState::kQueued: return "queued";
    case wire::JobState::kLeased: return "leased";
    case wire::JobState::kFinished: return "finished";
  }
  return "";
}

std::string ExplanationText(const wire::JobExplanation& explanation) {
  std::string text = fmt::format("job {} is {}\n", explanation.job, Printable(explanation.reason));
  if (explanation.state == wire::JobState::kFinished) return text;
  text += fmt::format("accepted {:.3f} s ago, priority {}, leased {} so far\n",
                      Seconds(explanation.waited_ms), explanation.priority,
                      Counted(explanation.attempts, "time", "times"));
  if (explanation.deadline_left_ms) {
    text += fmt::format("expires in {:.3f} s\n", Seconds(*explanation.deadline_left_ms));
  }
  if (!explanation.affinity_worker.empty()) {
    text += fmt::format("its affinity is bound to {}\n", Printable(explanation.affinity_worker));
  }
  return text + WorkersText(explanation);
}

Json ExplanationJson(const wire::JobExplanation& explanation) {
  Json workers = Json::array();
  for (const wire::WorkerFit& fit : explanation.workers) workers.push_back(FitJson(fit));
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  return Json{{"job", fmt::format("{}", explanation.job)},
              {"state", JobStateName(explanation.state)},
              {"reason", explanation.reason},
              {"priority", explanation.priority},
              {"waited_ms", explanation.waited_ms},
              {"deadline_left_ms",
               explanation.deadline_left_ms ? Json(*explanation.deadline_left_ms) : Json(nullptr)},
              {"attempts", explanation.attempts},
              {"ahead_own", explanation.ahead_own},
              {"ahead_own_is_exact", explanation.ahead_own_is_exact},
              {"ahead_others", explanation.ahead_others},
              {"other_clients", explanation.other_clients},
              {"follows",
               explanation.follows ? Json(fmt::format("{}", *explanation.follows)) : Json(nullptr)},
              {"affinity_worker", text_or_null(explanation.affinity_worker)},
              {"unserved_ms", explanation.unserved_ms},
              {"unserved_limit_ms", explanation.unserved_limit_ms},
              {"workers", std::move(workers)},
              {"more_workers", explanation.more_workers},
              {"worker", text_or_null(explanation.worker)},
              {"leased_ms", explanation.leased_ms},
              {"outcome", explanation.outcome ? OutcomeJson(*explanation.outcome) : Json(nullptr)}};
}

}  // namespace loopfleet::client
