#pragma once
// StoreReader: reads a database, with or without a writer at work, over a read-only connection of
// its own. Each call sees everything committed before it, and nothing of an open transaction.
//
// Threads: any one at a time. Open one for each thread.
//
// A damaged row is never used: the call fails with kCorrupt and names table and row. (ReadOutcomes
// continues where it safely can, see there.)

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/result.h"
#include "storage/record.h"

namespace loopfleet::storage {

class ResultKeys;
class UnfinishedJobs;

class StoreReader {
 public:
  // The file must exist and have this version's schema (Store::Open brings it there), or a newer
  // one that this version may write.
  //   kNotFound, kInvalid (another version, or not a loopfleet database), kCorrupt, kSystem
  // `keys`: the index of the Store that writes the file, if that is in this process
  // (Store::result_keys). Without it, the first FindResult() builds an index, and each later one
  // adds what was committed since.
  static Result<std::unique_ptr<StoreReader>> Open(
      const std::filesystem::path& path, std::shared_ptr<const ResultKeys> keys = nullptr);
  ~StoreReader();
  StoreReader(const StoreReader&) = delete;
  StoreReader& operator=(const StoreReader&) = delete;

  // The latest measurement that matches the full tuple, among the newest 64 of the tuple that are
  // new enough.
  Result<StoredAnswer> FindResult(const ResultKey& key);  // none: null
  // The same for a job that is not timed (common/job/task.h): precision and grade do not count.
  Result<StoredAnswer> FindObservation(const ResultKey& key);

  // The latest measurement of a kernel with this machine code under the conditions of `key` (its
  // tree does not count), among the newest 16 of the code, that is good and new enough, not suspect
  // and not thinned. Figures of grade C or D and copied figures do not count.
  Result<StoredAnswer> FindSameCode(const std::string& code_hash,
                                    const ResultKey& key);  // none: null

  // The latest known failure that matches the full tuple and is settled at `now` by verdicts since
  // measured_since (Settles() in storage/result_index/known_failures.h). A CUT matches if its bound
  // is `cut_above_ns` or higher (0: the job has no bound, so no CUT matches). Precision is ignored:
  // a failure has no figure.
  struct FailureQuery {
    ResultKey key;
    std::uint64_t cut_above_ns = 0;
    WallTime now{};
    std::function<std::vector<Witness>()> candidates;  // workers that could get the job; null: none
  };
  Result<StoredAnswer> FindFailure(const FailureQuery& question);  // none: null

  // The answer to this request, if it was accepted before.
  Result<std::optional<StoredRequest>> FindRequest(const Uuid& client, const Uuid& request_id);

  // The batch's outcomes with sequence > after_sequence, in order, at most `max`. Empty: none yet,
  // or no such batch (see FindBatch). If the row of a job or of its measurement is damaged, its
  // outcome is the failure STORAGE_CORRUPT, naming the row; the others are unharmed. The same holds
  // for a damaged row of an outcome, of which only the place is certain.
  Result<std::vector<Outcome>> ReadOutcomes(BatchId batch, std::uint64_t after_sequence,
                                            std::uint32_t max);

  // Outcomes of all batches after `after`, by batch and sequence, whose benchmark URI begins with
  // `benchmark_prefix`. Reads at most `max` rows, so a page may be empty without being the last
  // one.
  struct OutcomeRows {
    std::vector<Outcome> outcomes;
    OutcomePlace next;  // the last row read
    bool is_end = false;
  };
  Result<OutcomeRows> ListOutcomes(OutcomePlace after, std::uint32_t max,
                                   const std::string& benchmark_prefix);

  // Damaged rows that ReadOutcomes, ListOutcomes and ReadJob met since the last call.
  std::uint64_t TakeDamagedCount();

  // An accepted job and, once it is finished, its outcome. Empty: never accepted, or
  // pruned.
  Result<std::optional<StoredJob>> ReadJob(JobId job);

  // A cursor over the jobs that these batches (of Store::RecoverBatches) leave unfinished. It must
  // not outlive this reader.
  std::unique_ptr<UnfinishedJobs> ReadUnfinished(std::vector<StoredBatch> batches);

  Result<std::vector<StoredBatch>> ListBatches(std::uint32_t max);  // newest first
  Result<std::optional<StoredBatch>> FindBatch(BatchId batch);
  // Whether FindBatch() finds none because the batch was removed when it was old.
  Result<bool> WasPruned(BatchId batch);
  // The newest batch of a client. The coordinator's own batches have a nil client and do not count.
  Result<std::optional<StoredBatch>> NewestBatch();

 private:
  struct Impl;
  explicit StoreReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::storage
