#pragma once
// KnownFailures: failures that the same question would meet again, and where their outcomes are: so
// that a kernel which hangs takes its ten seconds of a timing slot once, and not once for each
// asker. A failure answers for the full tuple, as a result does; CUT answers for its bound and for
// lower ones.
//
// In memory: the newest kMost of them, about 100 bytes each; rows of earlier ones stay in the
// table. Any thread may ask; only the writer adds and publishes.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/job/failure.h"
#include "storage/record.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/conditions_table.h"

namespace loopfleet::storage {

// What a failure has to be for it to answer: about the tree and its conditions, not about one job's
// circumstances.
bool AnswersAgain(FailureCode code);
// A busy host can be a part of the reason: such a failure answers for a day only.
bool IsCircumstantial(FailureCode code);
inline constexpr std::chrono::hours kCircumstantialAge{24};

class KnownFailures {
 public:
  static constexpr std::size_t kMost = 65'536;

  struct Entry {
    std::uint64_t hash = 0;  // of the full tuple (HashOf): says where to look, no more
    FailureCode code = FailureCode::kRunCrash;
    std::uint64_t cut_above_ns = 0;
    BatchId batch;
    std::uint64_t sequence = 0;
    WallTime failed_at{};
  };

  // The newest rows of the table. Damaged ones are left out: measuring again is always right.
  Status Load(Connection& connection, ConditionsTable& conditions);
  // Newest first.
  std::vector<Entry> Find(std::uint64_t hash) const;

  // ---- the writer's, in a transaction ----
  Status Add(Connection& connection, ConditionsId conditions, const looptree::TreeKey& tree,
             const Entry& entry);
  // Takes away what this worker's drift may have caused. The outcomes that it is about are written.
  Status Suspect(Connection& connection, const ResultsSuspected& suspected);
  // Takes away the failure that this outcome is, if it is one that is known.
  Status Doubt(Connection& connection, BatchId batch, std::uint64_t sequence);
  void Publish();  // it is durable
  void Forget();   // it was undone

 private:
  void Remember(const Entry& entry);  // mutex_ is held

  using Place = std::pair<BatchId, std::uint64_t>;  // of the outcome

  std::vector<Entry> added_;    // the writer's
  std::set<Place> taken_away_;  // the writer's, among the added ones too
  mutable std::mutex mutex_;
  std::unordered_multimap<std::uint64_t, Entry> entries_;  // guarded by mutex_
  std::deque<std::uint64_t> oldest_;                       // guarded by mutex_: their hashes
};

}  // namespace loopfleet::storage
