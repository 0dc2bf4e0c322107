#pragma once
// Upper bounds for `queue`: the time of one disk sync, and the rate at which SQLite alone inserts
// the same rows. The coordinator cannot be faster than either.

#include <cstdint>
#include <filesystem>

#include "common/base/result.h"

namespace loopfleet::bench {

// The median microseconds to append 4 KiB to a file in the current directory and sync it
// (fdatasync), over 1,000 repetitions.
Result<double> DiskSyncMicroseconds();

// Jobs per second. Copies the `jobs` and `outcomes` rows of the last `batches` batches into a new
// database beside this one with the same schema and pragmas, `message` rows of each batch in turn,
// in transactions of `rows_per_commit` rows. One thread and only SQLite, which reads the rows from
// the first database meanwhile; nothing else writes that database.
Result<double> BareInsertRate(const std::filesystem::path& database, std::uint32_t batches,
                              std::uint32_t message, std::uint32_t rows_per_commit);

}  // namespace loopfleet::bench
