#include "client/cli/text/status_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <utility>

#include "client/cli/text/table.h"
#include "common/base/counted.h"
#include "common/base/printable.h"
#include "common/fleet/attention.h"
#include "common/fleet/fleet_json.h"

namespace loopfleet::client {

using wire::Severity;

namespace {

constexpr std::size_t kMostListed = 10;  // batches in a status

std::string IsoTime(WallTime when) {
  const auto seconds = std::chrono::time_point_cast<std::chrono::seconds>(when);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

bool IsRunning(const wire::BatchInfo& batch) {
  return batch.state == wire::BatchState::kOpen || batch.state == wire::BatchState::kRunning;
}

std::string_view LevelName(Severity level) {
  switch (level) {
    case Severity::kNotice: return "healthy";
    case Severity::kWarning: return "warning";
    case Severity::kProblem: return "problem";
  }
  return "";
}

wire::FleetHealth HealthIn(const wire::FleetInfo& fleet) {
  if (!fleet.health.sentence.empty()) return fleet.health;
  const std::string sentence = "The coordinator is older and does not say what needs attention.";
  return {.sentence = sentence,
          .attention = {{.severity = Severity::kWarning, .sentence = sentence}}};
}

std::string HintOf(const wire::Attention& item) {
  const AttentionInfo* info = FindAttention(item.kind);
  return std::string(info == nullptr ? "" : info->command);
}

}  // namespace

std::string AgeText(Nanos duration) {
  const auto seconds =
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(duration).count());
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  if (seconds < 86'400) return fmt::format("{} h {} min", seconds / 3600, seconds % 3600 / 60);
  return fmt::format("{} d {} h", seconds / 86'400, seconds % 86'400 / 3600);
}

std::uint64_t Queued(const wire::FleetInfo& fleet) {
  return fleet.queued_cpu + fleet.queued_cuda + fleet.queued_any;
}

std::string OldestText(const wire::FleetInfo& fleet) {
  if (!fleet.oldest_queued_at) return "";
  return fmt::format(", the oldest for {}", AgeText(fleet.now - *fleet.oldest_queued_at));
}

std::string FailuresText(const wire::FleetInfo& fleet) {
  std::vector<wire::FailureCount> failures = fleet.failures;
  std::ranges::stable_sort(failures, std::greater<>(), &wire::FailureCount::count);
  std::vector<std::string> parts;
  for (const auto& failure : failures) {
    parts.push_back(fmt::format("{} {}", Printable(failure.code), Thousands(failure.count)));
  }
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<wire::BatchInfo> Running(const wire::BatchList& list) {
  std::vector<wire::BatchInfo> running;
  std::ranges::copy_if(list.batches, std::back_inserter(running), IsRunning);
  return running;
}

std::vector<std::string> HealthLines(const wire::FleetInfo& fleet) {
  const wire::FleetHealth health = HealthIn(fleet);
  std::vector<std::string> lines;
  if (health.level() == Severity::kNotice) lines.push_back(Printable(health.sentence));
  for (const wire::Attention& item : health.attention) {
    const std::string hint = HintOf(item);
    lines.push_back(Printable(item.sentence) +
                    (hint.empty() ? "" : fmt::format(" See `{}`.", hint)));
  }
  return lines;
}

std::string StatusText(const FleetReplies& replies) {
  const wire::FleetInfo& fleet = replies.fleet;
  std::string text = fmt::format("{}\n\n", fmt::join(HealthLines(fleet), "\n"));
  text += fmt::format(
      "coordinator  version {}, up {}, start number {}{}\n", Printable(fleet.version),
      AgeText(fleet.now - fleet.started_at), fleet.epoch,
      fleet.http.empty() ? "" : fmt::format(", http://{}/metrics", Printable(fleet.http)));
  text += fmt::format("workers      {} ready, {} draining, {} quarantined, {} lost\n",
                      fleet.workers_ready, fleet.workers_draining, fleet.workers_quarantined,
                      fleet.workers_lost);
  text += fmt::format("queue        {} waiting (cpu {}, cuda {}, any {}){}; {} leased\n",
                      Thousands(Queued(fleet)), Thousands(fleet.queued_cpu),
                      Thousands(fleet.queued_cuda), Thousands(fleet.queued_any), OldestText(fleet),
                      Thousands(fleet.leased_jobs));
  text +=
      fmt::format("jobs         {} accepted, {} finished, {} failed, {} from the store or shared\n",
                  Thousands(fleet.accepted_jobs), Thousands(fleet.finished_jobs),
                  Thousands(fleet.failed_jobs), Thousands(fleet.shared_jobs));
  text += fmt::format("failures     {}\n", FailuresText(fleet));
  const std::vector<wire::BatchInfo> running = Running(replies.batches);
  for (std::size_t i = 0; i < std::min(running.size(), kMostListed); ++i) {
    text += fmt::format("{}batch {}: {} of {} done, {} failed{}\n",
                        i == 0 ? "running      " : "             ", running[i].batch,
                        Thousands(running[i].finished),
                        Counted(running[i].job_count, "job", "jobs"), Thousands(running[i].failed),
                        running[i].state == wire::BatchState::kOpen ? ", open" : "");
  }
  if (running.size() > kMostListed) {
    text += fmt::format("             and {} more: `loopfleet batch list`\n",
                        running.size() - kMostListed);
  }
  return text;
}

Json StatusJson(const FleetReplies& replies) {
  const wire::FleetInfo& fleet = replies.fleet;
  const wire::FleetHealth health = HealthIn(fleet);
  const std::string hint =
      health.level() == Severity::kNotice ? std::string() : HintOf(health.attention[0]);
  Json batches = Json::array();
  for (const wire::BatchInfo& batch : Running(replies.batches)) {
    batches.push_back({{"batch", batch.batch.value},
                       {"jobs", batch.job_count},
                       {"finished", batch.finished},
                       {"failed", batch.failed},
                       {"from_store", batch.from_store}});
  }
  Json failures = Json::object();
  for (const auto& failure : fleet.failures) failures[failure.code] = failure.count;
  return Json{{"health",
               {{"level", LevelName(health.level())},
                {"sentence", health.sentence},
                {"hint", hint.empty() ? Json(nullptr) : Json(hint)},
                {"attention", AttentionJson(health.attention)}}},
              {"coordinator",
               {{"version", fleet.version},
                {"epoch", fleet.epoch},
                {"started_at", IsoTime(fleet.started_at)},
                {"now", IsoTime(fleet.now)},
                {"http", fleet.http.empty() ? Json(nullptr) : Json(fleet.http)},
                {"storage_full", fleet.storage_full},
                {"stopping", fleet.stopping}}},
              {"workers",
               {{"ready", fleet.workers_ready},
                {"draining", fleet.workers_draining},
                {"quarantined", fleet.workers_quarantined},
                {"lost", fleet.workers_lost}}},
              {"queue",
               {{"cpu", fleet.queued_cpu},
                {"cuda", fleet.queued_cuda},
                {"any", fleet.queued_any},
                {"leased", fleet.leased_jobs},
                {"oldest_at",
                 fleet.oldest_queued_at ? Json(IsoTime(*fleet.oldest_queued_at)) : Json(nullptr)}}},
              {"jobs",
               {{"accepted", fleet.accepted_jobs},
                {"finished", fleet.finished_jobs},
                {"failed", fleet.failed_jobs},
                {"shared", fleet.shared_jobs}}},
              {"failures", failures},
              {"batches", batches}};
}

std::string EventText(const wire::FleetEvent& event) {
  std::string text = fmt::format("{}  {:<20}", IsoTime(event.at), Printable(event.kind));
  if (event.batch) text += fmt::format("  {}", *event.batch);
  if (!event.subject.empty()) text += "  " + Printable(event.subject);
  if (event.batch) text += fmt::format(", {}", Counted(event.count, "job", "jobs"));
  const bool is_about_something = event.batch || !event.subject.empty();
  if (!event.text.empty()) text += (is_about_something ? ": " : "  ") + Printable(event.text);
  return text;
}

Json EventJson(const wire::FleetEvent& event) {
  return Json{{"sequence", event.sequence},
              {"at", IsoTime(event.at)},
              {"kind", event.kind},
              {"subject", event.subject.empty() ? Json(nullptr) : Json(event.subject)},
              {"batch", event.batch ? Json(event.batch->value) : Json(nullptr)},
              {"count", event.count},
              {"text", event.text}};
}

}  // namespace loopfleet::client
