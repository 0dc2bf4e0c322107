#pragma once
// UnfinishedJobs: a cursor over the jobs that the last writer left without an outcome, in order.
// They are read in pieces, because reading a million of them would delay the first one too long.
// Rows may be written between two reads. Used by one thread, its StoreReader's.

#include <cstddef>
#include <optional>
#include <vector>

#include "common/base/result.h"
#include "storage/record.h"

namespace loopfleet::storage {

class UnfinishedJobs {
 public:
  virtual ~UnfinishedJobs() = default;

  // Appends the next jobs, about `max` at most, to `jobs` and `damaged`; fewer, or none, if most of
  // a batch has finished, because one call examines a bounded number of jobs. Jobs accepted since
  // the batches were read are not included; jobs finished since may be.
  virtual Status Read(std::size_t max, std::vector<UnfinishedJob>& jobs,
                      std::vector<JobId>& damaged) = 0;
  virtual bool at_end() const = 0;
  // This job, if it is one of them and not yet read. Read() will return it again.
  virtual Result<std::optional<UnfinishedJob>> ReadOutOfOrder(JobId job) = 0;
};

}  // namespace loopfleet::storage
