#pragma once
// TakeSnapshot: a copy of a database as it is at one moment, while its coordinator works on.
// An engine implements it.

#include <filesystem>

#include "common/base/result.h"

namespace loopfleet::storage {

// Copies `from` to the new file `to` (mode 0600). Afterwards `to` is complete, durable and a
// database of its own, or does not exist. What a killed process copied into this directory is
// removed by the next one. The writer is not blocked; its log grows meanwhile. To restore, stop the
// coordinator and start it with `--db` naming the copy, or a copy of that: it is marked as a
// snapshot, and the first Store that opens it begins another incarnation (store.h).
//   kNotFound, kInvalid (not a loopfleet database), kExists (`to` exists), kFull, kCorrupt, kSystem
Status TakeSnapshot(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace loopfleet::storage
