#pragma once
// BatchTable: every batch that can still change, because it takes more jobs or some of its jobs
// have no durable outcome.
//
// Invariant, for each batch: durable <= finished <= accepted <= job_count; it is here exactly until
// IsOver(). Storage has every batch ever accepted.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "common/base/clock.h"
#include "common/base/uuid.h"
#include "common/job/ids.h"
#include "coordinator/core/contract/event.h"

namespace loopfleet::coordinator {

// At most one message of a batch is on its way to disk: with two, a first one refused for lack of
// disk space and a second one accepted would leave a gap in the jobs' indices.
enum class Accepting : std::uint8_t { kNothing, kFirstMessage, kAppend };

struct Batch {
  BatchId id;
  Uuid client;
  bool open = true;           // takes more jobs
  Instant client_heard_at{};  // when its client last referred to it
  bool cancelled = false;
  bool cancelling = false;             // cancelled, but that is not on disk yet
  std::uint32_t cancelled_before = 0;  // no job with a smaller index is unfinished: all were ended
  // Told when the cancellation is on disk: the latest request of each connection.
  std::map<PeerId, std::uint64_t> cancel_askers;
  Accepting accepting = Accepting::kNothing;
  std::uint32_t job_count = 0;  // including those on their way to disk
  std::uint32_t accepted = 0;   // without those
  std::uint64_t finished = 0;   // outcomes made: the last sequence number assigned
  std::uint64_t durable = 0;    // outcomes on disk: what readers see
  std::deque<Submission> held;  // further messages, waiting for the one being written
  // Its share of its client's usage (client_usage.h): jobs without an outcome, including held ones.
  std::uint64_t pending_jobs = 0;
  std::uint64_t pending_bytes = 0;

  bool IsOver() const {
    return !open && !cancelling && accepting == Accepting::kNothing && held.empty() &&
           durable == job_count;
  }
};

// A batch of the coordinator itself: remeasurements after a drift. (An older database may have
// unfinished audits, too; they end as any other job does.)
inline bool IsInternal(const Batch& batch) { return batch.client == Uuid{}; }

class BatchTable {
 public:
  Batch& Add(Batch batch);
  Batch* Find(BatchId id);
  const Batch* Find(BatchId id) const;
  Batch& At(BatchId id);  // must exist
  void Remove(BatchId id);
  std::size_t size() const { return batches_.size(); }
  // Open batches whose client was not heard since.
  std::vector<BatchId> LeftOpen(Instant since) const;

  void ForgetCancelAskers(const std::set<PeerId>& peers);  // they will not be told
  const std::map<BatchId, Batch>& all() const { return batches_; }
  std::uint64_t rows_seen() const { return rows_seen_; }  // Core::rows_seen
  void CheckInvariants() const;

 private:
  std::map<BatchId, Batch> batches_;
  mutable std::uint64_t rows_seen_ = 0;
};

}  // namespace loopfleet::coordinator
