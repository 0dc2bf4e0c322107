#include "client/confirmation.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <variant>

#include "common/base/clock.h"

namespace loopfleet::client {
namespace {

// Before each further batch of measurements.
constexpr std::array<Nanos, 4> kPauses = {Nanos{0}, std::chrono::milliseconds(200),
                                          std::chrono::milliseconds(400),
                                          std::chrono::milliseconds(800)};
constexpr Nanos kLongest = std::chrono::seconds(2);  // no batch begins later

// At least one value.
double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t upper = values.size() / 2;
  const std::size_t lower = (values.size() - 1) / 2;
  return (values[lower] + values[upper]) / 2;
}

std::string TextOf(const looptree::Source& source) {
  const auto* uri = std::get_if<looptree::BenchmarkUri>(&source);
  return uri != nullptr ? uri->text : std::get<looptree::IrText>(source).text;
}

void AddFigure(const Outcome& outcome, Confirmed& confirmed) {
  const Evaluation& evaluation = outcome.evaluation;
  if (!evaluation.is_timed() || !evaluation.conditions ||
      evaluation.conditions->hardware.hardware_class != confirmed.winner.hardware_class) {
    return;
  }
  const Measurement& measurement = evaluation.measurement();
  const bool is_good = measurement.grade <= Grade::kB;
  (is_good ? confirmed.good_ns : confirmed.poor_ns).push_back(measurement.elapsed_ns);
}

}  // namespace

void Winners::Add(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  if (most_ == 0 || !evaluation.is_timed() || evaluation.measurement().grade == Grade::kD ||
      !evaluation.conditions) {
    return;
  }
  const double elapsed_ns = evaluation.measurement().elapsed_ns;
  std::vector<Entry>& best =
      entries_[{TextOf(outcome.benchmark), evaluation.conditions->hardware.hardware_class}];
  const auto same = std::ranges::find(best, evaluation.code_hash, &Entry::code_hash);
  if (same != best.end()) {
    if (same->winner.elapsed_ns <= elapsed_ns) return;
    best.erase(same);
  }
  const auto slower = std::ranges::find_if(
      best, [&](const Entry& entry) { return entry.winner.elapsed_ns > elapsed_ns; });
  best.insert(slower, {.winner = {.job = outcome.job,
                                  .benchmark = outcome.benchmark,
                                  .actions = outcome.actions,
                                  .hardware_class = evaluation.conditions->hardware.hardware_class,
                                  .flop_count = evaluation.flop_count,
                                  .elapsed_ns = elapsed_ns,
                                  .grade = evaluation.measurement().grade},
                       .code_hash = evaluation.code_hash});
  if (best.size() > most_) best.pop_back();
}

std::vector<Winner> Winners::Sorted() const {
  std::vector<Winner> winners;
  for (const auto& [group, best] : entries_) {
    for (const Entry& entry : best) winners.push_back(entry.winner);
  }
  return winners;
}

double Confirmed::elapsed_ns() const {
  return remeasured_ns().empty() ? 0 : MedianOf(remeasured_ns());
}

double Confirmed::bias() const {
  return remeasured_ns().empty() ? 0 : elapsed_ns() / winner.elapsed_ns - 1;
}

Answer<Confirmation> Confirm(Client& client, std::vector<Winner> winners, std::size_t repeats) {
  Confirmation confirmation;
  std::vector<JobSpec> specs;
  for (Winner& winner : winners) {
    LF_TRY(wire::JobInfo info, client.ShowJob(winner.job));
    info.spec.freshness = Freshness::kMeasureAgain;
    info.spec.cut_above_ns = 0;
    specs.push_back(std::move(info.spec));
    confirmation.winners.push_back({.winner = std::move(winner), .good_ns = {}, .poor_ns = {}});
  }
  const SystemClock clock;
  const Instant begun = clock.Now();
  for (const Nanos pause : kPauses) {
    std::vector<std::size_t> lacking;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (confirmation.winners[i].good_ns.size() < repeats) lacking.push_back(i);
    }
    if (lacking.empty() || clock.Now() - begun >= kLongest) break;
    std::this_thread::sleep_for(pause);
    std::vector<JobSpec> jobs;
    for (std::size_t i = 0; i < repeats * lacking.size(); ++i) {
      jobs.push_back(specs[lacking[i % lacking.size()]]);
    }
    const auto info = client.Evaluate(jobs, [&](const Outcome& outcome) {
      AddFigure(outcome, confirmation.winners[lacking[outcome.job.index % lacking.size()]]);
    });
    if (!info && confirmation.batch) break;  // the figures that there are, are enough
    if (!info) return std::unexpected(info.error());
    if (!confirmation.batch) confirmation.batch = info->batch;
  }
  return confirmation;
}

std::optional<double> MedianBias(const std::vector<Confirmed>& confirmed) {
  std::vector<double> biases;
  for (const Confirmed& one : confirmed) {
    if (!one.remeasured_ns().empty()) biases.push_back(one.bias());
  }
  if (biases.empty()) return std::nullopt;
  return MedianOf(std::move(biases));
}

}  // namespace loopfleet::client
