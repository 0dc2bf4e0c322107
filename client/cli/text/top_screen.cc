#include "client/cli/text/top_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "client/cli/text/table.h"
#include "common/base/counted.h"
#include "common/base/printable.h"
#include "common/fleet/fleet_json.h"

namespace loopfleet::client {

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
  return AgeText(std::chrono::seconds(std::lround(std::min(seconds, kLongest))));
}

std::string BarOf(const wire::BatchInfo& batch) {
  constexpr std::uint64_t kLength = 20;
  if (batch.job_count == 0) return std::string(kLength, '.');
  const std::uint64_t filled = batch.finished * kLength / batch.job_count;
  return std::string(filled, '#') + std::string(kLength - filled, '.');
}

void AddLines(std::vector<std::string>& lines, const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
}

std::string WorkersText(const ReplyHistory& history, std::size_t most) {
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

std::string BatchesText(const ReplyHistory& history, std::size_t most) {
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

std::vector<std::string> TopScreen(const ReplyHistory& history, const ScreenSize& size) {
  const FleetReplies& latest = history.latest();
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
