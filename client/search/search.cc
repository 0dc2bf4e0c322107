#include "client/search/search.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/search/figure.h"

namespace loopfleet::client {
namespace {

constexpr std::size_t kBatches = 2;  // under way
constexpr int kMostTries = 3;        // of a schedule whose outcome is inconclusive

}  // namespace

void Search::Add(Exploration exploration) {
  lanes_.emplace_back(std::move(exploration), limits_.winners);
}

double Search::seconds() const {
  return std::chrono::duration<double>(clock_.Now() - start_).count();
}

Answer<void> Search::Run(const std::function<void()>& on_batch) {
  start_ = clock_.Now();
  for (;;) {
    while (under_way_.size() < kBatches) {
      std::vector<Sent> batch = NextBatch();
      if (batch.empty()) break;
      std::vector<Trial> trials;
      for (const Sent& sent : batch) trials.push_back(sent.trial);
      LF_TRY_VOID(evaluator_.Send(trials));
      under_way_.push_back(std::move(batch));
    }
    if (under_way_.empty()) return {};
    LF_TRY(const std::vector<Outcome> outcomes, evaluator_.Receive());
    std::vector<Sent> batch = std::move(under_way_.front());
    under_way_.pop_front();
    TakeBatch(std::move(batch), outcomes);
    on_batch();
  }
}

std::vector<Search::Sent> Search::NextBatch() {
  if (limits_.seconds && seconds() >= *limits_.seconds) return {};
  const Instant start = clock_.Now();
  std::vector<Sent> batch = std::exchange(again_, {});
  const std::size_t share = std::max<std::size_t>(
      1, limits_.in_flight / kBatches / std::max<std::size_t>(lanes_.size(), 1));
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) AskLane(lane, share, batch);
  proposing_ += clock_.Now() - start;
  return batch;
}

void Search::AskLane(std::size_t number, std::size_t most, std::vector<Sent>& batch) {
  Lane& lane = lanes_[number];
  const Exploration& exploration = lane.exploration;
  if (limits_.evaluations) {
    const std::uint64_t asked = exploration.evaluations() + lane.under_way;
    most =
        std::min<std::uint64_t>(most, *limits_.evaluations - std::min(*limits_.evaluations, asked));
  }
  if (most == 0 || lane.is_exhausted) return;
  const double cut_above_ns =
      exploration.best() ? limits_.cut_factor * exploration.best()->elapsed_ns : 0;
  std::vector<Candidate> asked = lane.exploration.Ask(most);
  lane.is_exhausted = asked.empty() && lane.under_way == 0;
  lane.under_way += asked.size();
  for (Candidate& candidate : asked) {
    batch.push_back({.trial = {.source = exploration.space().source(),
                               .candidate = std::move(candidate),
                               .cut_above_ns = cut_above_ns},
                     .lane = number});
  }
}

void Search::TakeBatch(std::vector<Sent> batch, const std::vector<Outcome>& outcomes) {
  std::vector<std::vector<Evaluated>> told(lanes_.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Sent& sent = batch[i];
    const std::optional<double> elapsed_ns = Read(sent, outcomes[i]);
    if (!elapsed_ns) {
      ++sent.tries;
      again_.push_back(std::move(sent));
      continue;
    }
    told[sent.lane].push_back(
        {.candidate = std::move(sent.trial.candidate), .elapsed_ns = *elapsed_ns});
  }
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    lanes_[lane].under_way -= told[lane].size();
    lanes_[lane].exploration.Tell(told[lane], seconds());
  }
}

std::optional<double> Search::Read(const Sent& sent, const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  if (IsInconclusive(evaluation) && sent.tries < kMostTries) return std::nullopt;
  const double elapsed_ns = FigureOf(evaluation);
  if (elapsed_ns == kNoFigure || !evaluation.conditions) return kNoFigure;
  Lane& lane = lanes_[sent.lane];
  const std::string& hardware_class = evaluation.conditions->hardware.hardware_class;
  if (lane.hardware_class.empty()) {
    lane.hardware_class = hardware_class;
    lane.flop_count = evaluation.flop_count;
  }
  if (hardware_class != lane.hardware_class) {
    ++lane.other_hardware;
    return kNoFigure;
  }
  lane.winners.Add(outcome);
  if (sent.trial.candidate.actions.empty()) {
    lane.untuned = Winner{.job = outcome.job,
                          .benchmark = outcome.benchmark,
                          .actions = {},
                          .hardware_class = hardware_class,
                          .flop_count = evaluation.flop_count,
                          .elapsed_ns = elapsed_ns};
  }
  return elapsed_ns;
}

}  // namespace loopfleet::client
