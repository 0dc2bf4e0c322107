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
#include "storage/sqlite/tables/job_table.h"
#include "storage/sqlite/tables/result_table.h"

namespace loopfleet::storage {

class OutcomeTable {
 public:
  OutcomeTable(Connection& connection, ConditionsTable& conditions, ResultTable& results,
               JobTable& jobs)
      : connection_(connection), conditions_(conditions), results_(results), jobs_(jobs) {}

  // Also writes its measurement, unless that is there already. kExists: the job has an outcome.
  // What was inserted is written by Flush(), some of it sooner: kExists may come of that.
  Status Insert(const Outcome& outcome);
  // Of a job that somebody else's answer finished.
  Status Insert(const JobsAnswered& answered, const JobsAnswered::One& job);
  Status Flush();
  void Forget();  // the transaction was undone

  // Flags its measurement, if it has one. Gives the sequence of an outcome that has none: a
  // failure.
  Result<std::optional<std::uint64_t>> Doubt(const ResultDoubted& doubted);
  // By its place. Empty: no such row, or a damaged one.
  Result<std::optional<Outcome>> FindAt(BatchId batch, std::uint64_t sequence);

  // See StoreReader::ReadOutcomes.
  Result<std::vector<Outcome>> ReadAfter(BatchId batch, std::uint64_t sequence, std::uint32_t max);
  // See StoreReader::ListOutcomes.
  Result<std::vector<Outcome>> ListAfter(OutcomePlace after, std::uint32_t max);
  Result<std::optional<Outcome>> Find(JobId job);
  // Rows that became STORAGE_CORRUPT as they were read, since this was last asked.
  std::uint64_t TakeDamagedCount() { return std::exchange(damaged_, 0); }

  // Element i: has the job that is i after `first` in its batch an outcome?
  Result<std::vector<bool>> FinishedJobs(JobId first, std::uint32_t count);

 private:
  // A row by itself.
  struct Row {
    Outcome outcome;
    std::optional<ResultId> result;
    std::optional<ConditionsId> conditions;  // of a failure
  };
  static Result<Row> Read(Query& query);

  // The row of the outcome's measurement, written if need be; none for a failure.
  Result<std::optional<ResultId>> ResultOf(const Outcome& outcome);
  // By the index of jobs alone.
  Result<std::uint32_t> IndexOf(BatchId batch, std::uint64_t sequence);
  // The row, or what it becomes where it is damaged: only its keys are certain.
  Result<Outcome> ReadAndFinish(Query& query);
  // Puts in what the row refers to. kCorrupt: some of that is damaged.
  Status Resolve(Row& row);
  // The outcome, or what it becomes where that is damaged.
  Result<Outcome> Finish(Row row);

  Connection& connection_;
  ConditionsTable& conditions_;
  ResultTable& results_;
  JobTable& jobs_;
  std::uint64_t damaged_ = 0;
  RowFeed rows_{connection_,
                "INSERT OR ROLLBACK INTO outcomes SELECT c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,"
                "c13,c14,c15,c16,c17,c18,c19,c20,c21,c22,c23,c24 FROM row_feed"};
  // Columns that are the same in each row SQLite takes from the statement; it asks the feed for the
  // others only. Those of outcomes with a result:
  RowFeed measured_rows_{
      connection_,
      "INSERT OR ROLLBACK INTO outcomes SELECT c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10,c11,c12,c13,"
      "NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,c24 FROM row_feed"};
  // And of jobs that a stored answer finished:
  RowFeed answered_rows_{
      connection_,
      "INSERT OR ROLLBACK INTO outcomes SELECT c0,c1,c2,'stored',c4,0,c6,c7,c8,0,0,0,0,0,"
      "NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,c24 FROM row_feed"};
};

}  // namespace loopfleet::storage
