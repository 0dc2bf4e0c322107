#pragma once
// SqliteReader: a StoreReader over a read-only connection of its own.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "storage/store_reader.h"

namespace loopfleet::storage {

class ResultKeys;

class SqliteReader final : public StoreReader {
 public:
  // The file must exist and have this version's schema (SqliteStore::Open brings it there), or a
  // newer one that this version may write.
  //   kNotFound, kInvalid (another version, or not a loopfleet database), kCorrupt, kSystem
  // `keys`: the index of the Store that writes the file, if that is in this process
  // (SqliteStore::result_keys). Without it, the first FindResult() builds an index, and each later
  // one adds what was committed since.
  static Result<std::unique_ptr<SqliteReader>> Open(
      const std::filesystem::path& path, std::shared_ptr<const ResultKeys> keys = nullptr);
  ~SqliteReader() override;
  SqliteReader(const SqliteReader&) = delete;
  SqliteReader& operator=(const SqliteReader&) = delete;

  Result<StoredAnswer> FindResult(const ResultKey& key) override;
  Result<StoredAnswer> FindObservation(const ResultKey& key, ObservedValues values) override;
  Result<StoredAnswer> FindSameCode(const std::string& code_hash, const ProgramKey& program,
                                    const ResultKey& key) override;
  Result<StoredAnswer> FindFailure(const FailureQuery& question) override;
  Result<std::vector<BestSchedule>> FindBest(const BestQuery& query) override;
  Result<std::optional<StoredRequest>> FindRequest(const Uuid& client,
                                                   const Uuid& request_id) override;
  Result<std::vector<Outcome>> ReadOutcomes(BatchId batch, std::uint64_t after_sequence,
                                            const ReadBounds& bounds) override;
  Result<OutcomeRows> ListOutcomes(OutcomePlace after, const ReadBounds& bounds,
                                   const std::string& benchmark_prefix) override;
  Result<std::optional<FigureName>> RepeatedFigure(OutcomePlace outcome) override;
  Result<std::vector<Doubt>> ListDoubts(std::int64_t after, std::uint32_t max) override;
  std::uint64_t TakeDamagedCount() override;
  Result<std::optional<StoredJob>> ReadJob(JobId job) override;
  std::unique_ptr<UnfinishedJobs> ReadUnfinished(std::vector<StoredBatch> batches) override;
  Result<std::vector<StoredBatch>> ListBatches(std::uint32_t max) override;
  Result<std::vector<StoredBatch>> ListBatchesAfter(BatchId batch, std::uint32_t max) override;
  Result<Uuid> Incarnation() override;
  Result<BatchId> FirstOwnBatch() override;
  Result<std::vector<Restore>> Restores() override;
  Result<std::optional<StoredBatch>> FindBatch(BatchId batch) override;
  Result<bool> WasPruned(BatchId batch) override;
  Result<std::optional<StoredBatch>> NewestBatch() override;
  Result<BriefOutcomes> NewestOutcomes(std::uint32_t max) override;
  Result<ThinningCount> CountThinning(const ThinningRule& rule) override;
  Result<PruningCount> CountPruning(const PruningRule& rule) override;

 private:
  struct Impl;
  explicit SqliteReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loopfleet::storage
