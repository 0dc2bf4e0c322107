#include "client/cli/text/fleet_text.h"

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

std::string TimeText(WallTime when) {
  const auto seconds = std::chrono::time_point_cast<std::chrono::seconds>(when);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

std::string DurationText(Nanos duration) {
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

bool IsRunning(const wire::BatchInfo& batch) {
  return batch.state == wire::BatchState::kOpen || batch.state == wire::BatchState::kRunning;
}

std::vector<wire::BatchInfo> Running(const wire::BatchList& list) {
  std::vector<wire::BatchInfo> running;
  std::ranges::copy_if(list.batches, std::back_inserter(running), IsRunning);
  return running;
}

std::string OldestText(const wire::FleetInfo& fleet) {
  if (!fleet.oldest_queued_at) return "";
  return fmt::format(", the oldest for {}", DurationText(fleet.now - *fleet.oldest_queued_at));
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

// What needs attention, the worst first, or that nothing does.
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

}  // namespace

std::string StatusText(const FleetSnapshot& snapshot) {
  const wire::FleetInfo& fleet = snapshot.fleet;
  std::string text = fmt::format("{}\n\n", fmt::join(HealthLines(fleet), "\n"));
  text += fmt::format(
      "coordinator  version {}, up {}, start number {}{}\n", Printable(fleet.version),
      DurationText(fleet.now - fleet.started_at), fleet.epoch,
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
  const std::vector<wire::BatchInfo> running = Running(snapshot.batches);
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

Json StatusJson(const FleetSnapshot& snapshot) {
  const wire::FleetInfo& fleet = snapshot.fleet;
  const wire::FleetHealth health = HealthIn(fleet);
  const std::string hint =
      health.level() == Severity::kNotice ? std::string() : HintOf(health.attention[0]);
  Json batches = Json::array();
  for (const wire::BatchInfo& batch : Running(snapshot.batches)) {
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
                {"started_at", TimeText(fleet.started_at)},
                {"now", TimeText(fleet.now)},
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
                {"oldest_at", fleet.oldest_queued_at ? Json(TimeText(*fleet.oldest_queued_at))
                                                     : Json(nullptr)}}},
              {"jobs",
               {{"accepted", fleet.accepted_jobs},
                {"finished", fleet.finished_jobs},
                {"failed", fleet.failed_jobs},
                {"shared", fleet.shared_jobs}}},
              {"failures", failures},
              {"batches", batches}};
}

std::string EventText(const wire::FleetEvent& event) {
  std::string text = fmt::format("{}  {:<20}", TimeText(event.at), Printable(event.kind));
  if (event.batch) text += fmt::format("  {}", *event.batch);
  if (!event.subject.empty()) text += "  " + Printable(event.subject);
  if (event.batch) text += fmt::format(", {}", Counted(event.count, "job", "jobs"));
  const bool is_about_something = event.batch || !event.subject.empty();
  if (!event.text.empty()) text += (is_about_something ? ": " : "  ") + Printable(event.text);
  return text;
}

Json EventJson(const wire::FleetEvent& event) {
  return Json{{"sequence", event.sequence},
              {"at", TimeText(event.at)},
              {"kind", event.kind},
              {"subject", event.subject.empty() ? Json(nullptr) : Json(event.subject)},
              {"batch", event.batch ? Json(event.batch->value) : Json(nullptr)},
              {"count", event.count},
              {"text", event.text}};
}

// ---- history ------------------------------------------------------------------------------------

void FleetHistory::Add(FleetSnapshot snapshot) {
  if (!moments_.empty() && moments_.back().fleet.epoch != snapshot.fleet.epoch) {
    moments_.clear();
    events_.clear();
  }
  for (wire::FleetEvent& event : snapshot.fleet.events) {
    last_event_ = event.sequence;
    events_.push_back(std::move(event));
    if (events_.size() > kMostEvents) events_.pop_front();
  }
  if (snapshot.fleet.last_event < last_event_) last_event_ = 0;  // restarted, without events yet
  snapshot.fleet.events.clear();
  moments_.push_back(std::move(snapshot));
  if (moments_.size() > most_) moments_.pop_front();
}

const FleetSnapshot* FleetHistory::Earlier() const {
  if (moments_.size() < 2) return nullptr;
  return &moments_[moments_.size() - std::min(moments_.size(), kRateMoments)];
}

double FleetHistory::SecondsSince(const FleetSnapshot& earlier) const {
  return std::chrono::duration<double>(latest().fleet.now - earlier.fleet.now).count();
}

double FleetHistory::JobsPerSecond() const {
  const FleetSnapshot* earlier = Earlier();
  if (earlier == nullptr || SecondsSince(*earlier) <= 0) return 0;
  return static_cast<double>(latest().fleet.finished_jobs - earlier->fleet.finished_jobs) /
         SecondsSince(*earlier);
}

double FleetHistory::JobsPerSecondOf(const wire::WorkerInfo& worker) const {
  const FleetSnapshot* earlier = Earlier();
  if (earlier == nullptr || SecondsSince(*earlier) <= 0) return 0;
  const auto& then = earlier->workers.workers;
  const auto before = std::ranges::find(then, worker.worker, &wire::WorkerInfo::worker);
  if (before == then.end() || before->finished_jobs > worker.finished_jobs) return 0;
  return static_cast<double>(worker.finished_jobs - before->finished_jobs) / SecondsSince(*earlier);
}

double FleetHistory::JobsPerSecondOf(const wire::BatchInfo& batch) const {
  const FleetSnapshot* earlier = Earlier();
  if (earlier == nullptr || SecondsSince(*earlier) <= 0) return 0;
  const auto& then = earlier->batches.batches;
  const auto before = std::ranges::find(then, batch.batch, &wire::BatchInfo::batch);
  const std::uint32_t done = before == then.end() ? 0 : before->finished;
  return static_cast<double>(batch.finished - std::min(done, batch.finished)) /
         SecondsSince(*earlier);
}

std::vector<double> FleetHistory::RatePerStep() const {
  std::vector<double> rates;
  for (std::size_t i = 1; i < moments_.size(); ++i) {
    const auto& before = moments_[i - 1].fleet;
    const auto& after = moments_[i].fleet;
    const double seconds = std::chrono::duration<double>(after.now - before.now).count();
    rates.push_back(seconds > 0
                        ? static_cast<double>(after.finished_jobs - before.finished_jobs) / seconds
                        : 0);
  }
  return rates;
}

// ---- the screen ---------------------------------------------------------------------------------

namespace {

std::string RateText(double per_second) {
  if (per_second <= 0) return "-";
  return per_second < 10 ? fmt::format("{:.1f}", per_second)
                         : Thousands(static_cast<std::uint64_t>(std::lround(per_second)));
}

std::string Sparkline(const std::vector<double>& rates, std::size_t width) {
  constexpr std::string_view kLevels = "_.-:=+*#";
  if (rates.empty()) return "";
  const std::size_t count = std::min(rates.size(), width);
  const double most = std::max(1e-9, *std::ranges::max_element(rates));
  std::string line;
  for (std::size_t i = rates.size() - count; i < rates.size(); ++i) {
    const auto level = static_cast<std::size_t>(rates[i] / most * (kLevels.size() - 1) + 0.5);
    line += kLevels[std::min(level, kLevels.size() - 1)];
  }
  return line;
}

std::string TimeLeft(const wire::BatchInfo& batch, double per_second) {
  if (per_second <= 0) return "-";
  const double seconds = (batch.job_count - batch.finished) / per_second;
  constexpr double kLongest = 1e8;
  return DurationText(std::chrono::seconds(std::lround(std::min(seconds, kLongest))));
}

std::string BarOf(const wire::BatchInfo& batch) {
  constexpr std::uint64_t kWidth = 20;
  if (batch.job_count == 0) return std::string(kWidth, '.');
  const std::uint64_t filled = batch.finished * kWidth / batch.job_count;
  return std::string(filled, '#') + std::string(kWidth - filled, '.');
}

void AddLines(std::vector<std::string>& lines, const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
}

std::string WorkersText(const FleetHistory& history, std::size_t most) {
  Table table({"WORKER", "STATE", "JOBS/S", "LEASED", "FINISHED", "CANARY", "DEVICE"});
  std::vector<wire::WorkerInfo> workers = history.latest().workers.workers;
  // Workers that need attention first, lost ones last.
  const auto rank = [](const wire::WorkerInfo& worker) {
    switch (worker.state) {
      case wire::WorkerState::kQuarantined: return 0;
      case wire::WorkerState::kDraining: return 1;
      case wire::WorkerState::kReady: return 2;
      case wire::WorkerState::kLost: return 3;
    }
    return 4;
  };
  std::ranges::stable_sort(workers, {}, rank);
  for (std::size_t i = 0; i < std::min(workers.size(), most); ++i) {
    const wire::WorkerInfo& worker = workers[i];
    table.Add({Printable(worker.name), std::string(WorkerStateName(worker.state)),
               RateText(history.JobsPerSecondOf(worker)), Thousands(worker.leased_jobs),
               Thousands(worker.finished_jobs),
               worker.canary_ratio > 0 ? fmt::format("{:.3f}", worker.canary_ratio) : "-",
               Printable(worker.hardware.model)});
  }
  std::string text = table.Text();
  if (workers.size() > most) text += fmt::format("and {} more\n", workers.size() - most);
  return text;
}

std::string BatchesText(const FleetHistory& history, std::size_t most) {
  const std::vector<wire::BatchInfo> running = Running(history.latest().batches);
  if (running.empty()) return "";
  Table table({"BATCH", "PROGRESS", "DONE", "FAILED", "JOBS/S", "LEFT"});
  for (std::size_t i = 0; i < std::min(running.size(), most); ++i) {
    const wire::BatchInfo& batch = running[i];
    const double rate = history.JobsPerSecondOf(batch);
    table.Add({fmt::format("{}", batch.batch), BarOf(batch),
               fmt::format("{}/{}", Thousands(batch.finished), Thousands(batch.job_count)),
               Thousands(batch.failed), RateText(rate), TimeLeft(batch, rate)});
  }
  std::string text = table.Text();
  if (running.size() > most) text += fmt::format("and {} more\n", running.size() - most);
  return text;
}

}  // namespace

std::vector<std::string> TopScreen(const FleetHistory& history, const ScreenSize& size) {
  const FleetSnapshot& latest = history.latest();
  const wire::FleetInfo& fleet = latest.fleet;
  std::vector<std::string> lines = HealthLines(fleet);
  lines.push_back(
      fmt::format("jobs/s {}   waiting {}{}   leased {}   finished {}   failed {}   shared {}",
                  RateText(history.JobsPerSecond()), Thousands(Queued(fleet)), OldestText(fleet),
                  Thousands(fleet.leased_jobs), Thousands(fleet.finished_jobs),
                  Thousands(fleet.failed_jobs), Thousands(fleet.shared_jobs)));
  if (const std::vector<double> rates = history.RatePerStep(); !rates.empty()) {
    lines.push_back(fmt::format("[{}] up to {}/s", Sparkline(rates, size.columns / 2),
                                RateText(*std::ranges::max_element(rates))));
  }
  if (fleet.failed_jobs > 0) lines.push_back("failures: " + FailuresText(fleet));
  // Share the remaining rows equally between workers, batches and events.
  const std::size_t share = size.rows > lines.size() + 9 ? (size.rows - lines.size() - 6) / 3 : 1;
  lines.emplace_back();
  AddLines(lines, WorkersText(history, share));
  if (const std::string batches = BatchesText(history, share); !batches.empty()) {
    lines.emplace_back();
    AddLines(lines, batches);
  }
  if (!history.events().empty()) {
    lines.emplace_back();
    const auto& events = history.events();
    for (std::size_t i = events.size() - std::min(events.size(), share); i < events.size(); ++i) {
      lines.push_back(EventText(events[i]));
    }
  }
  if (lines.size() > size.rows) lines.resize(size.rows);
  for (std::string& line : lines) {
    if (line.size() > size.columns) line.resize(size.columns);
  }
  return lines;
}

}  // namespace loopfleet::client
