#pragma once
// JobTable: JobSpec <-> row of `jobs`. Any spec round-trips, those with senseless actions included.

#include <optional>

#include "common/base/result.h"
#include "common/job/ids.h"
#include "common/job/job_spec.h"
#include "storage/sqlite.h"

namespace loopfleet::storage {

class JobTable {
 public:
  explicit JobTable(Connection& connection) : connection_(connection) {}

  // kInvalid: an option that JSON cannot hold (a number that is not finite, a text that is not
  // UTF-8).
  Status Insert(JobId job, const JobSpec& spec);

  // kCorrupt: the row is not what was written.
  Result<std::optional<JobSpec>> Find(JobId job);

 private:
  Connection& connection_;
};

}  // namespace loopfleet::storage
