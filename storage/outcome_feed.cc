#include "storage/outcome_feed.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace loopfleet::storage {
namespace {

constexpr std::uint32_t kBatchesPerStep = 1'000;
constexpr std::uint32_t kOutcomesPerRead = 64;

// What a step may still take.
struct Room {
  std::size_t outcomes = 0;
  std::size_t bytes = kMostFeedBytes;

  bool is_empty() const { return outcomes == 0 || bytes == 0; }
  void Take(const Outcome& outcome) {
    --outcomes;
    bytes -= std::min(bytes, BytesOf(outcome));
  }
};

Result<std::optional<FigureName>> FigureRepeatedBy(StoreReader& reader, const Outcome& outcome) {
  const bool is_own = outcome.source == OutcomeSource::kMeasured && !outcome.evaluation.same_code;
  if (is_own || !outcome.evaluation.is_timed()) return std::nullopt;
  return reader.RepeatedFigure({.batch = outcome.job.batch, .sequence = outcome.sequence});
}

Status ReadBatch(StoreReader& reader, const StoredBatch& batch, Room& room, FeedStep& step) {
  std::uint64_t& sequence = step.after.open.at(batch.batch);
  while (sequence < batch.finished && !room.is_empty()) {
    const auto most =
        static_cast<std::uint32_t>(std::min<std::size_t>(room.outcomes, kOutcomesPerRead));
    LF_TRY(auto outcomes,
           reader.ReadOutcomes(batch.batch, sequence, {.max_rows = most, .max_bytes = room.bytes}));
    if (outcomes.empty()) break;  // a pruning is removing it
    sequence = outcomes.back().sequence;
    for (Outcome& outcome : outcomes) {
      room.Take(outcome);
      LF_TRY(auto figure, FigureRepeatedBy(reader, outcome));
      if (figure) step.repeated[step.outcomes.size()] = *std::move(figure);
      step.outcomes.push_back(std::move(outcome));
    }
  }
  step.waiting += batch.finished - std::min<std::uint64_t>(sequence, batch.finished);
  if (sequence >= batch.finished && batch.is_over()) step.after.open.erase(batch.batch);
  return {};
}

}  // namespace

Result<FeedStep> NextOutcomes(StoreReader& reader, const FeedPosition& from, std::uint32_t most) {
  FeedStep step{.outcomes = {}, .repeated = {}, .after = from};
  Room room{.outcomes = most};
  for (const auto& [id, sequence] : from.open) {
    LF_TRY(const std::optional<StoredBatch> batch, reader.FindBatch(id));
    if (batch) {
      LF_TRY_VOID(ReadBatch(reader, *batch, room, step));
    } else {
      step.after.open.erase(id);  // pruned
    }
  }
  LF_TRY(const auto batches, reader.ListBatchesAfter(from.last, kBatchesPerStep));
  for (const StoredBatch& batch : batches) {
    if (room.is_empty()) {
      step.waiting += batch.finished;
      continue;
    }
    step.after.last = batch.batch;
    step.after.open[batch.batch] = 0;
    LF_TRY_VOID(ReadBatch(reader, batch, room, step));
  }
  if (batches.size() == kBatchesPerStep) {  // those after them may have outcomes
    step.waiting = std::max<std::uint64_t>(step.waiting, 1);
  }
  return step;
}

}  // namespace loopfleet::storage
