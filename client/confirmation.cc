#include "client/confirmation.h"

#include <algorithm>
#include <variant>

namespace loopfleet::client {
namespace {

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::string TextOf(const looptree::Source& source) {
  const auto* uri = std::get_if<looptree::BenchmarkUri>(&source);
  return uri != nullptr ? uri->text : std::get<looptree::IrText>(source).text;
}

}  // namespace

void Winners::Add(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  if (most_ == 0 || !evaluation.ok() || evaluation.measurement().grade == Grade::kD ||
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
                                  .flop_count = evaluation.flop_count,
                                  .elapsed_ns = elapsed_ns},
                       .code_hash = evaluation.code_hash});
  if (best.size() > most_) best.pop_back();
}

std::vector<Winner> Winners::Take() const {
  std::vector<Winner> winners;
  for (const auto& [contest, best] : entries_) {
    for (const Entry& entry : best) winners.push_back(entry.winner);
  }
  return winners;
}

double Confirmed::elapsed_ns() const { return MedianOf(again_ns); }

double Confirmed::bias() const {
  return again_ns.empty() ? 0 : elapsed_ns() / winner.elapsed_ns - 1;
}

Answer<std::vector<Confirmed>> Confirm(Client& client, std::vector<Winner> winners,
                                       std::size_t turns) {
  std::vector<Confirmed> confirmed;
  std::vector<JobSpec> once;
  for (Winner& winner : winners) {
    LF_TRY(wire::JobInfo info, client.ShowJob(winner.job));
    info.spec.freshness = Freshness::kMeasureAgain;
    info.spec.cut_above_ns = 0;
    once.push_back(std::move(info.spec));
    confirmed.push_back({.winner = std::move(winner), .again_ns = {}});
  }
  std::vector<JobSpec> jobs;
  for (std::size_t turn = 0; turn < turns; ++turn)
    jobs.insert(jobs.end(), once.begin(), once.end());
  if (jobs.empty()) return confirmed;
  LF_TRY_VOID(client.Evaluate(jobs, [&](const Outcome& outcome) {
    if (!outcome.evaluation.ok()) return;
    confirmed[outcome.job.index % once.size()].again_ns.push_back(
        outcome.evaluation.measurement().elapsed_ns);
  }));
  return confirmed;
}

double MedianBias(const std::vector<Confirmed>& confirmed) {
  std::vector<double> biases;
  for (const Confirmed& one : confirmed) {
    if (!one.again_ns.empty()) biases.push_back(one.bias());
  }
  return MedianOf(std::move(biases));
}

}  // namespace loopfleet::client
