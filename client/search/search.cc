#include "client/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "client/search/figure.h"
#include "client/search/pace.h"

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
    while (batches_.size() < kBatches) {
      Batch batch = NextBatch();
      if (batch.empty()) break;
      std::vector<std::size_t> places(batch.size());
      std::iota(places.begin(), places.end(), 0);
      batches_.push_back(std::move(batch));
      LF_TRY_VOID(SendTrials(batches_.back(), std::move(places)));
    }
    if (batches_.empty()) return {};
    while (std::ranges::any_of(batches_.front(),
                               [](const Asked& one) { return !one.cost.has_value(); })) {
      LF_TRY_VOID(ReceiveTrials());
    }
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    TellBatch(std::move(batch));
    on_batch();
  }
}

Search::Batch Search::NextBatch() {
  if (limits_.seconds && seconds() >= *limits_.seconds) return {};
  const Instant start = clock_.Now();
  Batch batch;
  const std::size_t most = MostNow();
  if (most == 0 && !batches_.empty()) return {};
  const std::size_t share =
      std::max<std::size_t>(1, most / std::max<std::size_t>(lanes_.size(), 1));
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) AskLane(lane, share, batch);
  proposing_ += clock_.Now() - start;
  return batch;
}

std::size_t Search::MostNow() const {
  const std::size_t share = limits_.in_flight / kBatches;
  if (!limits_.seconds) return share;
  std::uint64_t told = 0;
  std::uint64_t under_way = 0;
  for (const Lane& lane : lanes_) {
    told += lane.exploration.evaluations();
    under_way += lane.under_way;
  }
  // At first, the untuned ones.
  const std::size_t most =
      told > 0 ? MostUnderWay(*limits_.seconds, seconds(), told) : lanes_.size();
  const std::size_t more = most - std::min<std::uint64_t>(most, under_way);
  return std::min({share, more, told > 0 ? (most + 1) / kBatches : more});
}

void Search::AskLane(std::size_t number, std::size_t most, Batch& batch) {
  Lane& lane = lanes_[number];
  const Exploration& exploration = lane.exploration;
  if (limits_.evaluations) {
    const std::uint64_t asked = exploration.evaluations() + lane.under_way;
    most =
        std::min<std::uint64_t>(most, *limits_.evaluations - std::min(*limits_.evaluations, asked));
  }
  if (most == 0 || lane.is_exhausted) return;
  const double cut_above_ns =
      exploration.best() ? CutAbove(limits_.cut_factor, exploration.best()->cost) : 0;
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

Answer<void> Search::SendTrials(Batch& batch, std::vector<std::size_t> places) {
  std::vector<Trial> trials;
  for (const std::size_t place : places) {
    ++batch[place].tries;
    trials.push_back(batch[place].trial);
  }
  LF_TRY_VOID(evaluator_.Send(trials));
  requests_.push_back({.batch = &batch, .places = std::move(places)});
  return {};
}

Answer<void> Search::ReceiveTrials() {
  LF_TRY(const std::vector<Outcome> outcomes, evaluator_.Receive());
  const Request request = std::move(requests_.front());
  requests_.pop_front();
  std::vector<std::size_t> again;
  for (std::size_t i = 0; i < request.places.size(); ++i) {
    Asked& asked = (*request.batch)[request.places[i]];
    asked.cost = Read(asked, outcomes[i]);
    if (!asked.cost) again.push_back(request.places[i]);
  }
  if (again.empty()) return {};
  return SendTrials(*request.batch, std::move(again));
}

void Search::TellBatch(Batch batch) {
  std::vector<std::vector<Evaluated>> told(lanes_.size());
  for (Asked& one : batch) {
    told[one.lane].push_back({.candidate = std::move(one.trial.candidate), .cost = *one.cost});
  }
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    lanes_[lane].under_way -= told[lane].size();
    lanes_[lane].exploration.Tell(told[lane], seconds());
  }
}

std::optional<double> Search::Read(const Asked& asked, const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  if (IsInconclusive(evaluation) && asked.tries < kMostTries) return std::nullopt;
  const double cost = FigureOf(evaluation);
  Lane& lane = lanes_[asked.lane];
  if (cost == kNoFigure || !evaluation.conditions) {
    lane.failure = evaluation.ok() ? "grade D"
                                   : fmt::format("{}: {}", InfoOf(evaluation.failure().code).name,
                                                 evaluation.failure().message);
    return kNoFigure;
  }
  if (const auto* observed = std::get_if<Observed>(&evaluation.verdict)) {
    lane.instructions_oz = std::get<double>(observed->values.at(kInstructionsOz));
    return cost;  // exact, and the same everywhere
  }
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
  if (asked.trial.candidate.actions.empty()) {
    lane.untuned = Winner{.job = outcome.job,
                          .benchmark = outcome.benchmark,
                          .actions = {},
                          .hardware_class = hardware_class,
                          .flop_count = evaluation.flop_count,
                          .elapsed_ns = cost};
  }
  return cost;
}

}  // namespace loopfleet::client
