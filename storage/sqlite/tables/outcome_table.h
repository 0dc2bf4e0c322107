#pragma once
// OutcomeTable: Outcome <-> row of `outcomes` and what it refers to.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "common/job/outcome.h"
#include "storage/sqlite/bulk_insert.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/tables/conditions_table.h"
#include "storage/sqlite/tables/foreign_table.h"
#include "storage/sqlite/tables/job_table.h"
#include "storage/sqlite/tables/observation_table.h"
#include "storage/sqlite/tables/result_table.h"

namespace loopfleet::storage {

class OutcomeTable {
 public:
  OutcomeTable(Connection& connection, ConditionsTable& conditions, ResultTable& results,
               JobTable& jobs)
      : connection_(connection),
        conditions_(conditions),
        results_(results),
        jobs_(jobs),
        observations_(connection, conditions),
        foreign_(connection) {}

  // Also writes the outcome's measurement or observed values, unless that is stored already.
  // Returns the row of these, if any.
  // kExists: the job has an outcome. The row is written by Flush(), or sooner, so kExists may also
  // come from there.
  // `answer`: the stored result that the outcome repeats; null: it is new, or of a job under way.
  Result<std::optional<ResultId>> Insert(const Outcome& outcome,
                                         const StoredResult* answer = nullptr);
  // The outcome of a job that another job's answer finished.
  Status Insert(const JobsAnswered& answered, const JobsAnswered::One& job);
  Status Flush();
  void Forget();  // the transaction was rolled back

  // Flags the job's measurement as suspect. If its outcome is a failure, returns that outcome's
  // sequence instead.
  Result<std::optional<std::uint64_t>> Doubt(const ResultDoubted& doubted);
  // The outcome at this place. Empty: no such row, or a damaged one.
  Result<std::optional<Outcome>> FindAt(BatchId batch, std::uint64_t sequence);

  // See StoreReader::ReadOutcomes.
  Result<std::vector<Outcome>> ReadAfter(BatchId batch, std::uint64_t sequence,
                                         const ReadBounds& bounds);
  // See StoreReader::ListOutcomes.
  struct Listed {
    std::vector<Outcome> outcomes;
    bool is_end = false;
  };
  Result<Listed> ListAfter(OutcomePlace after, const ReadBounds& bounds);
  Result<std::optional<Outcome>> Find(JobId job);
  // Rows read as STORAGE_CORRUPT since the last call.
  std::uint64_t TakeDamagedCount() { return std::exchange(damaged_, 0); }

  // When the outcome at this place was finished. kCorrupt: it is damaged or missing.
  Result<WallTime> FinishedAt(BatchId batch, std::uint64_t sequence);
  // Removes the batch's last outcomes, at most `most`.
  struct Removed {
    std::uint32_t rows = 0;
    std::uint64_t first_sequence = 0;  // of those removed
  };
  Result<Removed> RemoveLast(BatchId batch, std::uint32_t most);

  // Element i: whether job `first` + i of its batch has an outcome.
  Result<std::vector<bool>> FinishedJobs(JobId first, std::uint32_t count);

 private:
  // A row without what it refers to.
  struct Row {
    Outcome outcome;
    std::optional<ResultId> result;
    std::optional<ConditionsId> conditions;  // of a failure only
    bool same_code = false;                  // Evaluation::same_code
  };
  static Result<Row> Read(Query& query);

  // The outcome's row of `results` or `observations`, written if it is new; none for a failure.
  Result<std::optional<ResultId>> ResultOf(const Outcome& outcome, const StoredResult* answer);
  Result<std::optional<ResultId>> ObservationOf(const Outcome& outcome);
  // Of an outcome with a result, its evaluation's stages are all that counts.
  Status AddRow(const Outcome& outcome, std::optional<ResultId> result);
  // The job's index, read from the table's index and not from the row.
  Result<std::uint32_t> IndexOf(BatchId batch, std::uint64_t sequence);
  // The outcome, or STORAGE_CORRUPT if the row is damaged: then only its keys are certain.
  Result<Outcome> ReadAndFinish(Query& query, ObservedValues observed);
  // Fills in what the row refers to. kCorrupt: part of that is damaged.
  Status Resolve(Row& row, ObservedValues observed);
  // The outcome, or STORAGE_CORRUPT if what the row refers to is damaged.
  Result<Outcome> Finish(Row row, ObservedValues observed);

  Connection& connection_;
  ConditionsTable& conditions_;
  ResultTable& results_;
  JobTable& jobs_;
  ObservationTable observations_;
  ForeignTable foreign_;
  // The observed values that jobs were answered with last, and their row: a thousand jobs may share
  // 512 KiB.
  struct Shared {
    StoredAnswer answer;
    ResultId row = 0;
  };
  Shared shared_;
  std::uint64_t damaged_ = 0;
  RowFeed rows_{connection_,
                "INSERT OR ROLLBACK INTO outcomes SELECT c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,"
                "c13,c14,c15,c16,c17,c18,c19,c20,c21,c22,c23,c24 FROM row_feed"};
  // Outcomes with a result. SQLite takes the constant columns from the statement, and asks the feed
  // for the others only.
  RowFeed measured_rows_{
      connection_,
      "INSERT OR ROLLBACK INTO outcomes SELECT c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,c13,"
      "NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,c24 FROM row_feed"};
  // Outcomes of jobs that a stored answer finished.
  RowFeed answered_rows_{
      connection_,
      "INSERT OR ROLLBACK INTO outcomes SELECT c0,c1,c2,'stored',c4,0,c6,c7,c8,0,0,0,0,0,"
      "NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,c24 FROM row_feed"};
};

}  // namespace loopfleet::storage
