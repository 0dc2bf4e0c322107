#pragma once
// StoreReader: reads a database, with or without a writer at work. Each call sees everything
// committed before it, and nothing of an open transaction.
//
// Threads: any one at a time. Open one for each thread (Store::OpenReader, storage/open.h).
//
// A damaged row is never used: the call fails with kCorrupt and names table and row. (ReadOutcomes
// and ListDoubts continue where they safely can, see there.)

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/result.h"
#include "storage/brief_outcome.h"
#include "storage/pruning.h"
#include "storage/record.h"
#include "storage/thinning.h"

namespace loopfleet::storage {

class UnfinishedJobs;

class StoreReader {
 public:
  virtual ~StoreReader() = default;

  // The latest measurement that matches the full tuple, among the newest 64 of the tuple that are
  // new enough.
  virtual Result<StoredAnswer> FindResult(const ResultKey& key) = 0;  // none: null
  // The same for a job that is not timed (common/job/task.h): precision and grade do not count.
  virtual Result<StoredAnswer> FindObservation(const ResultKey& key, ObservedValues values) = 0;

  // The latest measurement of a kernel of this program with this machine code under the conditions
  // of `key` (its tree does not count), among the newest 16 of the code, that is good and new
  // enough, not suspect and not thinned. Figures of grade C or D and copied figures do not count.
  // The code is a worker's word; the program is the coordinator's.
  virtual Result<StoredAnswer> FindSameCode(const std::string& code_hash, const ProgramKey& program,
                                            const ResultKey& key) = 0;  // none: null

  // The latest known failure that matches the full tuple and is settled at `now` by verdicts since
  // measured_since (storage/settled_failure.h). A CUT matches if its bound
  // is `cut_above_ns` or higher (0: the job has no bound, so no CUT matches). Precision is ignored:
  // a failure has no figure.
  struct FailureQuery {
    ResultKey key;
    std::uint64_t cut_above_ns = 0;
    WallTime now{};
    std::function<std::vector<Witness>()> candidates;  // workers that could get the job; null: none
  };
  virtual Result<StoredAnswer> FindFailure(const FailureQuery& question) = 0;  // none: null

  // The fastest schedules of the program that were measured under these conditions, the fastest
  // first. Each tree counts by its newest figure; copied figures and those of grade D do not count.
  // A store keeps the fastest few of each program and conditions: what came into doubt is missing
  // from these, and is not replaced by a slower one that was measured before. Of a commit with
  // hundreds of figures a store may enter the first ones alone: what the others would have changed,
  // newest figures of known trees included, changes with the next figure of that tree.
  virtual Result<std::vector<BestSchedule>> FindBest(const BestQuery& query) = 0;

  // The answer to this request, if it was accepted before.
  virtual Result<std::optional<StoredRequest>> FindRequest(const Uuid& client,
                                                           const Uuid& request_id) = 0;

  // The batch's outcomes with sequence > after_sequence, in order. Empty: none yet, or no such
  // batch (see FindBatch). If the row of a job or of its measurement is damaged, its outcome is the
  // failure STORAGE_CORRUPT, naming the row; the others are unharmed. The same holds for a damaged
  // row of an outcome, of which only the place is certain.
  virtual Result<std::vector<Outcome>> ReadOutcomes(BatchId batch, std::uint64_t after_sequence,
                                                    const ReadBounds& bounds) = 0;

  // Outcomes of all batches after `after`, by batch and sequence, whose benchmark URI begins with
  // `benchmark_prefix`. The bounds count the others, too, so a page may be empty without being the
  // last one.
  struct OutcomeRows {
    std::vector<Outcome> outcomes;
    OutcomePlace next;  // the last row read
    bool is_end = false;
  };
  virtual Result<OutcomeRows> ListOutcomes(OutcomePlace after, const ReadBounds& bounds,
                                           const std::string& benchmark_prefix) = 0;

  // The measurement whose figure this outcome repeats: it was stored, coalesced, or of the same
  // code. None: it has no figure or one of its own, or what it repeats is not known or damaged.
  virtual Result<std::optional<FigureName>> RepeatedFigure(OutcomePlace outcome) = 0;

  // The figures that came into doubt after that number, at most `max`, in order. If the row of the
  // doubt is damaged, its reason says so. A figure whose own row is damaged cannot be named and is
  // left out.
  virtual Result<std::vector<Doubt>> ListDoubts(std::int64_t after, std::uint32_t max) = 0;

  // Damaged rows that ReadOutcomes, ListOutcomes, ReadJob and FindFailure met since the last call.
  virtual std::uint64_t TakeDamagedCount() = 0;

  // An accepted job and, once it is finished, its outcome. Empty: never accepted, or
  // pruned.
  virtual Result<std::optional<StoredJob>> ReadJob(JobId job) = 0;

  // A cursor over the jobs that these batches (of Store::RecoverBatches) leave unfinished. It must
  // not outlive this reader.
  virtual std::unique_ptr<UnfinishedJobs> ReadUnfinished(std::vector<StoredBatch> batches) = 0;

  // The newest ones, the newest first. Older unfinished ones take up to half of the places, those
  // of the oldest finished ones: what runs for long shows, however many short ones came since.
  virtual Result<std::vector<StoredBatch>> ListBatches(std::uint32_t max) = 0;
  // Batches with a higher number, the lowest first, at most `max`. Damaged ones are skipped.
  virtual Result<std::vector<StoredBatch>> ListBatchesAfter(BatchId batch, std::uint32_t max) = 0;
  virtual Result<std::optional<StoredBatch>> FindBatch(BatchId batch) = 0;
  // As Store::incarnation().
  virtual Result<Uuid> Incarnation() = 0;
  // The lowest number that a new batch of this incarnation may have. Those below are of earlier
  // ones: they came with the snapshot that was restored.
  virtual Result<BatchId> FirstOwnBatch() = 0;
  // A restore of a snapshot.
  struct Restore {
    Uuid lost;            // the incarnation that the snapshot was taken of; nil: not known
    BatchId first_batch;  // the lowest number that a new batch could have since
    BatchId last_batch;   // the newest of the snapshot
    std::map<BatchId, std::uint64_t> unfinished;  // its batches, with their outcomes at that time
  };
  // Those that led to this incarnation, the oldest first.
  virtual Result<std::vector<Restore>> Restores() = 0;
  // Whether FindBatch() finds none because the batch was removed when it was old.
  virtual Result<bool> WasPruned(BatchId batch) = 0;
  // The newest batch of a client. The coordinator's own batches have a nil client and do not count.
  virtual Result<std::optional<StoredBatch>> NewestBatch() = 0;

  // The newest outcomes in brief, at most `max`, and fewer of wide ones: newest batch first; within
  // a batch, latest outcome first. For overviews: no decision depends on it, so damage may go
  // unnoticed.
  virtual Result<BriefOutcomes> NewestOutcomes(std::uint32_t max) = 0;

  // What a pass over everything (Store::Thin, Store::Prune) would remove. Damaged batches are not
  // told apart.
  virtual Result<ThinningCount> CountThinning(const ThinningRule& rule) = 0;
  virtual Result<PruningCount> CountPruning(const PruningRule& rule) = 0;
};

}  // namespace loopfleet::storage
