#include "storage/outcome_feed.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <variant>

namespace loopfleet::storage {
namespace {

bool IsOver(const StoredBatch& batch) { return batch.closed && batch.finished == batch.job_count; }

}  // namespace

Result<OutcomeFeed::Step> OutcomeFeed::Next(std::uint32_t most) {
  Step step{.outcomes = {}, .after = at_};
  text_bytes_ = 0;
  for (const auto& [id, sequence] : at_.open) {
    LF_TRY(const std::optional<StoredBatch> batch, reader_.FindBatch(id));
    if (batch) {
      LF_TRY_VOID(ReadBatch(*batch, most, step));
    } else {
      step.after.open.erase(id);  // pruned
    }
  }
  LF_TRY(const auto batches, reader_.ListBatchesAfter(at_.last, kBatchesPerStep));
  for (const StoredBatch& batch : batches) {
    if (IsFull(most, step)) {
      step.waiting += batch.finished;
      continue;
    }
    step.after.last = batch.batch;
    step.after.open[batch.batch] = 0;
    LF_TRY_VOID(ReadBatch(batch, most, step));
  }
  return step;
}

Status OutcomeFeed::ReadBatch(const StoredBatch& batch, std::uint32_t most, Step& step) {
  std::uint64_t& sequence = step.after.open.at(batch.batch);
  while (sequence < batch.finished && !IsFull(most, step)) {
    const auto room = most - static_cast<std::uint32_t>(step.outcomes.size());
    LF_TRY(auto outcomes,
           reader_.ReadOutcomes(batch.batch, sequence, std::min(room, kOutcomesPerRead)));
    if (outcomes.empty()) break;  // a pruning is removing it
    sequence = outcomes.back().sequence;
    for (const Outcome& outcome : outcomes) {
      text_bytes_ +=
          outcome.tag.size() +
          std::visit([](const auto& source) { return source.text.size(); }, outcome.benchmark);
    }
    std::ranges::move(outcomes, std::back_inserter(step.outcomes));
  }
  step.waiting += batch.finished - std::min<std::uint64_t>(sequence, batch.finished);
  if (sequence >= batch.finished && IsOver(batch)) step.after.open.erase(batch.batch);
  return {};
}

}  // namespace loopfleet::storage
