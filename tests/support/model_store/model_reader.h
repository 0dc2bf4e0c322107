#pragma once
// ModelReader: the StoreReader of a ModelDatabase.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/store_reader.h"
#include "tests/support/model_store/model_database.h"

namespace loopfleet::storage {

class ModelReader final : public StoreReader {
 public:
  explicit ModelReader(const ModelDatabase& database) : database_(database) {}

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
  std::uint64_t TakeDamagedCount() override { return 0; }
  Result<std::optional<StoredJob>> ReadJob(JobId job) override;
  std::unique_ptr<UnfinishedJobs> ReadUnfinished(std::vector<StoredBatch> batches) override;
  Result<std::vector<StoredBatch>> ListBatches(std::uint32_t max) override;
  Result<std::vector<StoredBatch>> ListBatchesAfter(BatchId batch, std::uint32_t max) override;
  Result<Uuid> Incarnation() override { return database_.incarnation; }
  Result<BatchId> FirstOwnBatch() override { return BatchId{1}; }  // it has no snapshots
  Result<std::vector<Restore>> Restores() override { return {}; }
  Result<std::optional<StoredBatch>> FindBatch(BatchId batch) override;
  Result<bool> WasPruned(BatchId batch) override { return database_.pruned.contains(batch); }
  Result<std::optional<StoredBatch>> NewestBatch() override;
  Result<BriefOutcomes> NewestOutcomes(std::uint32_t max) override;
  Result<ThinningCount> CountThinning(const ThinningRule& rule) override;
  Result<PruningCount> CountPruning(const PruningRule& rule) override;

 private:
  // The newest that is good and new enough among the newest `most` that `fits`.
  template <class FitsKey>
  StoredAnswer NewestOf(std::size_t most, const ResultKey& key, const FitsKey& fits) const;
  std::vector<Outcome> OutcomesAfter(OutcomePlace place, BatchId last,
                                     const ReadBounds& bounds) const;

  const ModelDatabase& database_;
};

}  // namespace loopfleet::storage
