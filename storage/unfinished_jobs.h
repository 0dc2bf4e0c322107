#pragma once
// UnfinishedJobs: the jobs that the last writer left without an outcome, piece by piece, in order:
// a million of them take longer to read than anybody should have to wait for the first. A place in
// that list, and no more: it may be read on while new rows are written.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/result.h"
#include "storage/record.h"
#include "storage/sqlite/tables/job_table.h"
#include "storage/sqlite/tables/outcome_table.h"

namespace loopfleet::storage {

class UnfinishedJobs {
 public:
  UnfinishedJobs(JobTable& jobs, OutcomeTable& outcomes, std::vector<StoredBatch> batches)
      : jobs_(jobs), outcomes_(outcomes), batches_(std::move(batches)) {}

  // Appends the next ones, about `max` at most, to `jobs` and `damaged`; fewer, or none, where most
  // of a batch has finished: what one call looks at is bounded, too. Jobs accepted since the
  // batches were read are not among them; jobs finished since may be.
  Status Read(std::size_t max, std::vector<UnfinishedJob>& jobs, std::vector<JobId>& damaged);
  bool at_end() const { return batch_ == batches_.size(); }
  // This job, if it is one of them and still to come. It will come again in its turn.
  Result<std::optional<UnfinishedJob>> ReadEarly(JobId job);

 private:
  // So many jobs of a batch are looked at together: which of them have an outcome is read first.
  static constexpr std::uint32_t kWindow = 4'096;
  // What one call of Read() looks at: it ends with the window in which so many were.
  static constexpr std::size_t kMaxRounds = 16'384;

  bool IsAhead(JobId job) const;
  // Looks at the jobs from next_ on that have an outcome or not, kWindow at most.
  Status LookOn(const StoredBatch& batch);
  void SkipFinished();
  // The same, where a page of the table is damaged: each job by itself, so that those on other
  // pages are found. What cannot be read is damaged.
  Status ReadOneByOne(BatchId batch, std::size_t max, std::vector<UnfinishedJob>& jobs,
                      std::vector<JobId>& damaged);
  // On to the end of the window, or until there is room for no more.
  Status ReadWindow(BatchId batch, std::size_t max, std::vector<UnfinishedJob>& jobs,
                    std::vector<JobId>& damaged);

  JobTable& jobs_;
  OutcomeTable& outcomes_;
  const std::vector<StoredBatch> batches_;  // by ascending id
  std::size_t batch_ = 0;                   // the one that is being read
  std::uint32_t next_ = 0;                  // index in it
  std::uint32_t window_ = 0;                // where in it the window begins
  std::vector<bool> finished_;              // element i: job window_ + i has an outcome
};

}  // namespace loopfleet::storage
