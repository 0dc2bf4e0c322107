#pragma once
// JobTable: JobSpec <-> row of `jobs`. Any spec round-trips, even one with illegal actions.

#include <functional>
#include <optional>

#include "common/base/result.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "storage/record.h"
#include "storage/sqlite/bulk_insert.h"
#include "storage/sqlite/sqlite.h"

namespace loopfleet::storage {

class JobTable {
 public:
  explicit JobTable(Connection& connection) : connection_(connection) {}

  // The row is written by Flush(), or sooner. kInvalid: an option that JSON cannot hold (a number
  // that is not finite, a text that is not UTF-8).
  Status Insert(JobId job, const JobSpec& spec, WallTime accepted_at,
                const std::optional<ReplayResult>& replayed);
  Status Flush() { return rows_.Flush(); }
  void Forget() {  // the transaction was rolled back
    rows_.Forget();
    oldest_program_ = 0;
  }

  // kCorrupt: the row is damaged.
  Result<std::optional<JobSpec>> Find(JobId job);

  // The same, with the additional fields of an unfinished job.
  Result<std::optional<UnfinishedJob>> FindUnfinished(JobId job);

  // Calls `visit` for each job of the batch from index `first` on, in order, with the job, or with
  // kCorrupt if its row is damaged. Skips missing rows. Ends when `visit` returns kStop.
  enum class Go { kOn, kStop };
  using Visit = std::function<Go(JobId, Result<UnfinishedJob>)>;
  Status ForEach(BatchId batch, std::uint32_t first, const Visit& visit);

  // Removes the batch's first jobs, at most `most_rows`, and none beyond the one whose text reaches
  // `most_bytes`. No rows: none is left.
  struct Removed {
    std::uint32_t rows = 0;
    std::size_t bytes = 0;  // of text
  };
  Result<Removed> RemoveFirst(BatchId batch, std::uint32_t most_rows, std::size_t most_bytes);

 private:
  // Programs of version 13 cannot read jobs with passes, those of version 16 no profiles: they may
  // write the database no more.
  Status RaiseOldestProgram(int version);

  Connection& connection_;
  int oldest_program_ = 0;  // as RaiseOldestProgram left it; 0: unknown
  RowFeed rows_{connection_,
                "INSERT OR ROLLBACK INTO jobs SELECT c0,c1,c2,c3,c4,c5,c6,c7,c8,c9,c10 "
                "FROM row_feed"};
};

}  // namespace loopfleet::storage
