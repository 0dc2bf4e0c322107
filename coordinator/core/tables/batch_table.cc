#include "coordinator/core/tables/batch_table.h"

#include <utility>

#include "common/base/check.h"

namespace loopfleet::coordinator {

Batch& BatchTable::Add(Batch batch) {
  const BatchId id = batch.id;
  const auto [entry, added] = batches_.try_emplace(id, std::move(batch));
  LF_CHECK(added, "batch {} is here already", id);
  return entry->second;
}

Batch* BatchTable::Find(BatchId id) {
  const auto entry = batches_.find(id);
  return entry == batches_.end() ? nullptr : &entry->second;
}

const Batch* BatchTable::Find(BatchId id) const {
  const auto entry = batches_.find(id);
  return entry == batches_.end() ? nullptr : &entry->second;
}

Batch& BatchTable::At(BatchId id) {
  Batch* batch = Find(id);
  LF_CHECK(batch != nullptr, "batch {} is not here", id);
  return *batch;
}

void BatchTable::Remove(BatchId id) {
  LF_CHECK(batches_.erase(id) == 1, "batch {} is not here", id);
}

std::vector<BatchId> BatchTable::LeftOpen(Instant since) const {
  rows_seen_ += batches_.size();
  std::vector<BatchId> left;
  for (const auto& [id, batch] : batches_) {
    const bool waits = batch.open && batch.accepting == Accepting::kNothing;
    if (waits && batch.client_heard_at < since) left.push_back(id);
  }
  return left;
}

void BatchTable::ForgetCancelAskers(const std::set<PeerId>& peers) {
  rows_seen_ += batches_.size();
  for (auto& [id, batch] : batches_) {
    std::erase_if(batch.cancel_askers, [&](const auto& one) { return peers.contains(one.first); });
  }
}

void BatchTable::CheckInvariants() const {
  for (const auto& [id, batch] : batches_) {
    LF_CHECK(batch.durable <= batch.finished && batch.finished <= batch.accepted &&
                 batch.accepted <= batch.job_count,
             "batch {}: durable {}, finished {}, accepted {}, jobs {}", id, batch.durable,
             batch.finished, batch.accepted, batch.job_count);
    LF_CHECK(!batch.IsOver(), "batch {} is over and still here", id);
    LF_CHECK(batch.accepting != Accepting::kNothing || batch.held.empty(),
             "batch {} holds messages back for nothing", id);
    LF_CHECK(!batch.cancelled || !batch.open, "batch {} is cancelled and open", id);
  }
}

}  // namespace loopfleet::coordinator
