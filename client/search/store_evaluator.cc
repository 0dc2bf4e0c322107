#include "client/search/store_evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "client/search/figure.h"
#include "storage/open.h"
#include "storage/record.h"
#include "storage/store_reader.h"

namespace loopfleet::client {
namespace {

constexpr storage::ReadBounds kPage{.max_rows = 10'000, .max_bytes = std::size_t{32} << 20};

CallError ToCallError(const Error& error) {
  return {.kind = error.kind, .message = error.message, .refusal = {}};
}

const std::string& TextOf(const looptree::Source& source) {
  return std::visit([](const auto& kind) -> const std::string& { return kind.text; }, source);
}

// Whether it says something about the schedule, and under the usual conditions.
bool IsUsable(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  return evaluation.subject && evaluation.conditions && evaluation.conditions->threads == 1 &&
         evaluation.conditions->cache == CacheState::kWarm && !IsInconclusive(evaluation);
}

}  // namespace

StoreEvaluator::StoreEvaluator(std::unique_ptr<storage::StoreReader> reader)
    : reader_(std::move(reader)) {}
StoreEvaluator::~StoreEvaluator() = default;

Result<std::unique_ptr<StoreEvaluator>> StoreEvaluator::Open(const std::string& file) {
  LF_TRY(auto reader, storage::OpenReader(file));
  std::unique_ptr<StoreEvaluator> evaluator(new StoreEvaluator(std::move(reader)));
  LF_TRY_VOID(evaluator->ReadDoubts());
  return evaluator;
}

Status StoreEvaluator::ReadDoubts() {
  std::int64_t newest = 0;
  while (true) {
    LF_TRY(const auto doubts, reader_->ListDoubts(newest, kPage.max_rows));
    if (doubts.empty()) return {};
    for (const storage::Doubt& doubt : doubts) {
      doubted_.emplace(doubt.subject, doubt.worker, doubt.measured_at);
    }
    newest = doubts.back().number;
  }
}

Result<bool> StoreEvaluator::IsInDoubt(const Outcome& outcome) {
  const Evaluation& evaluation = outcome.evaluation;
  if (doubted_.empty() || !evaluation.is_timed()) return false;
  if (doubted_.contains({*evaluation.subject, outcome.worker, outcome.finished_at})) return true;
  if (outcome.source == OutcomeSource::kMeasured && !evaluation.same_code) return false;
  LF_TRY(const auto repeated,
         reader_->RepeatedFigure({.batch = outcome.job.batch, .sequence = outcome.sequence}));
  return repeated &&
         doubted_.contains({repeated->subject, repeated->worker, repeated->measured_at});
}

Answer<void> StoreEvaluator::Send(std::span<const Trial> trials) {
  std::vector<Outcome> outcomes;
  for (const Trial& trial : trials) {
    LF_TRY(const Outcomes* known, OutcomesOf(trial.source, trial.candidate.key));
    if (const auto found = known->find(trial.candidate.key); found != known->end()) {
      outcomes.push_back(found->second);
      continue;
    }
    Outcome& unknown = outcomes.emplace_back();
    unknown.evaluation.verdict = Failure{.code = FailureCode::kNotFound,
                                         .message = "the database has no figure of this tree"};
    unknown.evaluation.subject = trial.candidate.key;
  }
  sent_.push_back(std::move(outcomes));
  return {};
}

Answer<std::vector<Outcome>> StoreEvaluator::Receive() {
  std::vector<Outcome> oldest = std::move(sent_.front());
  sent_.pop_front();
  return oldest;
}

Answer<const StoreEvaluator::Outcomes*> StoreEvaluator::OutcomesOf(const looptree::Source& source,
                                                                   const looptree::TreeKey& start) {
  const std::string& text = TextOf(source);
  const auto [known, is_new] = known_.try_emplace(text);
  if (!is_new) return &known->second;
  // A program that was sent as IR text has no URI to begin with anything.
  const bool has_uri = std::holds_alternative<looptree::BenchmarkUri>(source);
  std::map<std::tuple<std::string, std::string, std::string>, Outcomes> by_conditions;
  std::optional<std::string> first_class;  // of the start's first figure
  OutcomePlace next;
  for (bool is_end = false; !is_end;) {
    auto page = reader_->ListOutcomes(next, kPage, has_uri ? text : "");
    if (!page) return std::unexpected(ToCallError(page.error()));
    next = page->next;
    is_end = page->is_end;
    for (Outcome& outcome : page->outcomes) {
      if (!IsUsable(outcome) || TextOf(outcome.benchmark) != text) continue;
      const auto is_in_doubt = IsInDoubt(outcome);
      if (!is_in_doubt) return std::unexpected(ToCallError(is_in_doubt.error()));
      if (*is_in_doubt) continue;
      const Conditions& under = *outcome.evaluation.conditions;
      const looptree::TreeKey key = *outcome.evaluation.subject;
      if (!first_class && key == start && outcome.evaluation.ok()) {
        first_class = under.hardware.hardware_class;
      }
      Outcomes& alike =
          by_conditions[{under.hardware.hardware_class, under.compiler.revision, under.policy}];
      const auto first = alike.find(key);
      if (first == alike.end()) {
        alike.emplace(key, std::move(outcome));
      } else if (!first->second.evaluation.ok() && outcome.evaluation.ok()) {
        first->second = std::move(outcome);
      }
    }
  }
  const auto chosen = std::ranges::max_element(by_conditions, {}, [&](const auto& entry) {
    const auto& [conditions, outcomes] = entry;
    const auto found = outcomes.find(start);
    const bool has_start = std::get<0>(conditions) == first_class && found != outcomes.end() &&
                           found->second.evaluation.ok();
    return std::pair(has_start, outcomes.size());
  });
  if (chosen != by_conditions.end()) known->second = std::move(chosen->second);
  return &known->second;
}

}  // namespace loopfleet::client
