#pragma once
// ModelStore: a Store in maps, as plain as its contract allows. The simulation runs on it, and the
// conformance suite holds it and the real engines to the same contract
// (tests/unit/storage/conformance_test.cc). It keeps its rows in a ModelDatabase, which outlives it
// as a file does. One thread; nothing is ever damaged.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "storage/store.h"
#include "storage/store_reader.h"

namespace loopfleet::storage {

struct ModelDatabase {
  struct Row {
    StoredAnswer answer;  // its stages are zero
    bool is_suspect = false;
    std::int64_t original = 0;  // of a copied figure: the row that it copies, or its own; else 0
    std::optional<ProgramKey> program = std::nullopt;  // of one that FindBest may find
    JobId job = {};                                    // that measured it
    WallTime measured_elsewhere_at{};                  // the epoch: it was measured here
    JobSpec spec = {};                                 // of that job
  };
  struct KnownFailure {
    JobId job;
    std::uint64_t cut_above_ns = 0;
    Witness witness;
    bool is_suspect = false;
  };

  std::uint64_t epoch = 0;
  Uuid incarnation = Uuid::Random();
  std::map<BatchId, StoredBatch> batches;
  std::map<std::pair<Uuid, Uuid>, StoredRequest> requests;  // by client and request
  std::map<JobId, JobSpec> jobs;
  std::map<JobId, WallTime> accepted_at;
  std::map<JobId, std::optional<ReplayResult>> replayed;
  std::map<JobId, Outcome> outcomes;
  std::map<JobId, std::int64_t> row_of;  // of those with a result
  std::map<std::pair<BatchId, std::uint64_t>, JobId> sequences;
  std::map<std::int64_t, Row> results;  // by row: above 0 timed, below 0 observed
  std::vector<KnownFailure> failures;   // oldest first
  std::vector<Doubt> doubts;
  std::map<std::string, WorkersDrained> drains;
  std::set<BatchId> pruned;

  bool is_full = false;  // nothing can be written
};

class ModelStore final : public Store {
 public:
  //   kFull  the epoch cannot be written
  static Result<std::unique_ptr<ModelStore>> Open(ModelDatabase& database);

  Result<Recovery> RecoverBatches() override;
  std::uint64_t epoch() const override { return epoch_; }
  const Uuid& incarnation() const override { return database_.incarnation; }
  Result<std::unique_ptr<StoreReader>> OpenReader() override;
  using Store::Apply;
  Status Apply(WriteGroup group) override;
  std::uint64_t TakeDamagedCount() override { return 0; }
  Status FlagMore() override { return {}; }
  bool HasMoreToFlag() const override { return false; }  // Apply() flags all
  // A pass is one step.
  Status Thin(Thinning& pass, WallTime now) override;
  Status Prune(Pruning& pass, WallTime now) override;
  Result<std::uint64_t> ForgetFailures(const FailureFilter& filter) override;
  Status Compact() override { return {}; }

 private:
  explicit ModelStore(ModelDatabase& database);

  struct Writer;  // one overload for each kind of write
  ModelDatabase& database_;
  const std::uint64_t epoch_;
  std::vector<std::function<void()>> undo_;  // of the group being applied
};

class ModelReader final : public StoreReader {
 public:
  explicit ModelReader(const ModelDatabase& database) : database_(database) {}

  Result<StoredAnswer> FindResult(const ResultKey& key) override;
  using StoreReader::FindObservation;
  Result<StoredAnswer> FindObservation(const ResultKey& key, ObservedValues values) override;
  Result<StoredAnswer> FindSameCode(const std::string& code_hash, const ResultKey& key) override;
  Result<StoredAnswer> FindFailure(const FailureQuery& question) override;
  Result<std::vector<BestSchedule>> FindBest(const BestQuery& query) override;
  Result<std::optional<StoredRequest>> FindRequest(const Uuid& client,
                                                   const Uuid& request_id) override;
  using StoreReader::ReadOutcomes;
  Result<std::vector<Outcome>> ReadOutcomes(BatchId batch, std::uint64_t after_sequence,
                                            const ReadBounds& bounds) override;
  using StoreReader::ListOutcomes;
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
