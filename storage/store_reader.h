#pragma once
// StoreReader: reads a database while its writer works, or when none does. Its own connection,
// which cannot write; each call sees everything that was committed before it, and nothing
// half-done.
//
// Threads: any one at a time. Open several for several threads.
//
// A row that is not what was written is never used: the call fails with kCorrupt and names table
// and row. (ReadOutcomes goes on where it safely can, see there.)

#include <cstdint>
#include <filesystem>
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
  // The file must exist and have this version's schema (Store::Open brings it there).
  //   kNotFound, kInvalid (another version, or not a loopfleet database), kCorrupt, kSystem
  // `keys`: of the Store that writes the file, if that is in this process (Store::result_keys).
  // Else the first FindResult() reads where the results are, and each later one what was added
  // since.
  static Result<std::unique_ptr<StoreReader>> Open(
      const std::filesystem::path& path, std::shared_ptr<const ResultKeys> keys = nullptr);
  ~StoreReader();
  StoreReader(const StoreReader&) = delete;
  StoreReader& operator=(const StoreReader&) = delete;

  // The latest measurement that matches the full tuple.
  Result<StoredAnswer> FindResult(const ResultKey& key);  // none: null

  // The latest known failure that matches the full tuple and is new enough; of CUT one whose bound
  // is `cut_above_ns` or higher (0: the job has no bound, so none). Precision does not matter:
  // there is no figure. Not older than measured_since, nor, where a busy host may be a part of the
  // reason, than kCircumstantialAge before `now`.
  struct FailureQuestion {
    ResultKey key;
    std::uint64_t cut_above_ns = 0;
    WallTime now{};
  };
  Result<StoredAnswer> FindFailure(const FailureQuestion& question);  // none: null

  // What this request was answered with, if it was accepted before.
  Result<std::optional<StoredRequest>> FindRequest(const Uuid& client, const Uuid& request_id);

  // The batch's outcomes with sequence > after_sequence, in order, at most `max` of them. Empty:
  // none yet (or no such batch: FindBatch tells). Where the row of a job or of its measurement is
  // damaged, the outcome comes with failure STORAGE_CORRUPT, naming the row, and the others are
  // unharmed; so it is where an outcome's own row is damaged, of which only its place is certain.
  Result<std::vector<Outcome>> ReadOutcomes(BatchId batch, std::uint64_t after_sequence,
                                            std::uint32_t max);

  // Outcomes of all batches after `after`, by batch and sequence, of benchmarks whose URI begins
  // so. Looks at no more than `max` rows, so the page may be empty and not the last
  // one.
  struct OutcomeRows {
    std::vector<Outcome> outcomes;
    OutcomePlace next;  // the last row that was looked at
    bool is_end = false;
  };
  Result<OutcomeRows> ListOutcomes(OutcomePlace after, std::uint32_t max,
                                   const std::string& benchmark_prefix);

  // Rows that were met in ReadOutcomes and its like and are not what was written, since this was
  // last asked.
  std::uint64_t TakeDamagedCount();

  // An accepted job and, once it is finished, its outcome. Empty: never accepted.
  Result<std::optional<StoredJob>> ReadJob(JobId job);

  // A place in the jobs that these batches (of Store::RecoverBatches) leave unfinished. Goes before
  // this reader does.
  std::unique_ptr<UnfinishedJobs> ReadUnfinished(std::vector<StoredBatch> batches);

  Result<std::vector<StoredBatch>> ListBatches(std::uint32_t max);  // newest first
  Result<std::optional<StoredBatch>> FindBatch(BatchId batch);
  // Of a client: the coordinator's own, its audits, have a nil one.
  Result<std::optional<StoredBatch>> NewestBatch();

 private:
  struct Impl;
  explicit StoreReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::storage
