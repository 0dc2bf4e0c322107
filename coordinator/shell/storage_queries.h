#pragma once
// StorageQueries: builds replies from storage, each cut to fit one frame. Belongs to the event
// loop's thread.

#include <optional>
#include <variant>

#include "common/wire/message.h"
#include "coordinator/core/contract/effect.h"
#include "storage/record.h"
#include "storage/store_reader.h"

namespace loopfleet::coordinator {

wire::BatchInfo BatchInfoOf(const storage::StoredBatch& batch);
// The refusal for a failed read: BUSY if the error may pass, else STORAGE_CORRUPT.
wire::Refused Unreadable(const Error& error);
// Why one of these jobs has no outcome to flag; empty if each has one.
std::optional<Failure> WhyNotFlagged(storage::StoreReader& reader, const wire::FlagResults& flag);

class StorageQueries {
 public:
  explicit StorageQueries(storage::StoreReader& reader) : reader_(reader) {}

  // Each may return a Refused: NOT_FOUND, or as Unreadable.
  wire::CoordinatorMessage Outcomes(const wire::FetchOutcomes& fetch);
  wire::CoordinatorMessage Answer(const wire::ListBatches& list);
  wire::CoordinatorMessage Answer(const wire::ShowBatch& show);
  wire::CoordinatorMessage Answer(const wire::ExplainJob& explain, Unknown why = Unknown::kIsOver);
  wire::CoordinatorMessage Answer(const wire::ListOutcomes& list);
  wire::CoordinatorMessage Answer(const wire::FindBest& find);
  // Damage counts as "none found": to measure is always right.
  wire::CodeLookupAnswer Answer(const AnswerCodeLookup& question);
  wire::CoordinatorMessage Job(JobId job, const std::optional<LiveJob>& live);

 private:
  storage::StoreReader& reader_;
};

}  // namespace loopfleet::coordinator
