#pragma once
// UnfinishedRows: the UnfinishedJobs of an SQLite file.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "storage/record.h"
#include "storage/sqlite/tables/job_table.h"
#include "storage/sqlite/tables/outcome_table.h"
#include "storage/unfinished_jobs.h"

namespace loopfleet::storage {

class UnfinishedRows final : public UnfinishedJobs {
 public:
  UnfinishedRows(JobTable& jobs, OutcomeTable& outcomes, std::vector<StoredBatch> batches)
      : jobs_(jobs), outcomes_(outcomes), batches_(std::move(batches)) {}

  Status Read(std::size_t max, std::vector<UnfinishedJob>& jobs,
              std::vector<JobId>& damaged) override;
  bool at_end() const override { return batch_ == batches_.size(); }
  Result<std::optional<UnfinishedJob>> ReadOutOfOrder(JobId job) override;

 private:
  // Jobs of a batch that are examined together: which of them have an outcome is read first.
  static constexpr std::uint32_t kWindow = 4'096;
  // Jobs that one call of Read() examines, rounded up to whole windows.
  static constexpr std::size_t kMaxExamined = 16'384;

  bool IsAhead(JobId job) const;
  // Reads which of the jobs from next_ on have an outcome, kWindow at most.
  Status ReadWindowOutcomes(const StoredBatch& batch);
  void SkipFinished();
  // ReadWindow for a window with a damaged page: reads each job by itself, so that jobs on other
  // pages are found. A job that cannot be read is damaged.
  Status ReadOneByOne(BatchId batch, std::size_t max, std::vector<UnfinishedJob>& jobs,
                      std::vector<JobId>& damaged);
  // Reads to the end of the window, or until `max` jobs are appended.
  Status ReadWindow(BatchId batch, std::size_t max, std::vector<UnfinishedJob>& jobs,
                    std::vector<JobId>& damaged);

  JobTable& jobs_;
  OutcomeTable& outcomes_;
  const std::vector<StoredBatch> batches_;  // by ascending id
  std::size_t batch_ = 0;                   // index of the batch being read
  std::uint32_t next_ = 0;                  // index of the next job in it
  std::uint32_t window_ = 0;                // index of the window's first job in it
  std::vector<bool> finished_;              // element i: job window_ + i has an outcome
};

}  // namespace loopfleet::storage
