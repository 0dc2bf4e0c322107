#include "storage/sqlite/tables/batches_in_work.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/log.h"

namespace loopfleet::storage {

Status BatchesInWork::Add(const StoredBatch& batch) {
  LF_TRY(const bool is_there, IsThere(batch.batch));
  if (is_there) {
    return Fail(ErrorKind::kExists, fmt::format("batch {} is there already", batch.batch));
  }
  changed_.emplace(batch.batch, batch);
  return {};
}

// Numbers ascend: one above all others is new without a look.
Result<bool> BatchesInWork::IsThere(BatchId id) {
  if (changed_.contains(id)) return true;
  if (!newest_) {
    LF_TRY(const std::uint64_t next, table_.NextId());
    newest_ = BatchId{next - 1};
  }
  if (id > *newest_) {
    newest_ = id;
    return false;
  }
  LF_TRY(const auto stored, table_.Find(id));
  return stored.has_value();
}

Result<StoredBatch*> BatchesInWork::Change(BatchId id, Known known) {
  LF_TRY(StoredBatch * batch, Entry(id));
  if (known == Known::kIsOpen && presumed_closed_.erase(id) > 0) batch->closed = false;
  return batch;
}

Result<StoredBatch*> BatchesInWork::Close(BatchId id) {
  LF_TRY(StoredBatch * batch, Entry(id));
  batch->closed = true;
  presumed_closed_.erase(id);
  return batch;
}

Result<StoredBatch*> BatchesInWork::Entry(BatchId id) {
  if (const auto found = changed_.find(id); found != changed_.end()) return &found->second;
  if (const auto* found = known_.Find(id)) return &changed_.emplace(*found).first->second;
  auto stored = table_.Find(id);
  if (!stored && stored.error().kind == ErrorKind::kCorrupt) {
    log::Warning("store.batch_rebuilt batch={}", id);
    ++damaged_;
    LF_TRY(const StoredBatch rebuilt, table_.Rebuild(id));
    presumed_closed_.insert(id);
    return &changed_.emplace(id, rebuilt).first->second;
  }
  if (!stored) return std::unexpected(std::move(stored).error());
  if (!*stored) return Fail(ErrorKind::kInvalid, fmt::format("there is no batch {}", id));
  return &changed_.emplace(id, **stored).first->second;
}

Status BatchesInWork::Save() {
  for (const auto& [id, batch] : changed_) LF_TRY_VOID(table_.Save(batch));
  return {};
}

void BatchesInWork::Committed() {
  for (const auto& [id, batch] : changed_) {
    if (auto* entry = known_.Find(id)) {
      entry->second = batch;
    } else {
      known_.Add(id, batch);
    }
  }
  changed_.clear();
  presumed_on_disk_ = presumed_closed_;
}

void BatchesInWork::RolledBack() {
  changed_.clear();
  presumed_closed_ = presumed_on_disk_;
}

}  // namespace loopfleet::storage
