#pragma once
// The peers of `queue` that are no queues: what the disk takes for a sync, and what SQLite takes
// for the same rows when nothing else is done. What goes through the coordinator can be no quicker.

#include <cstdint>
#include <filesystem>

#include "common/base/result.h"

namespace loopfleet::bench {

// Microseconds: the median of 1,000 times of appending a page of 4 KiB to a file in the current
// directory and syncing it (fdatasync).
Result<double> DiskSyncMicroseconds();

// Jobs per second: a new database beside this one, with its schema and pragmas, is given rows of
// `jobs` and `outcomes` of its last `batches` batches, `message` of each in turn, in transactions
// of `rows_per_commit` rows. One thread and nothing but SQLite, which reads the rows from the first
// database while it does (its writer is gone, or idle).
Result<double> BareInsertRate(const std::filesystem::path& database, std::uint32_t batches,
                              std::uint32_t message, std::uint32_t rows_per_commit);

}  // namespace loopfleet::bench
