#pragma once
// RepairOutcomes: rebuilds the table `outcomes` from what can be read of it, while no coordinator
// runs. SQLite cannot write a row next to a page that it cannot read, so without this the jobs
// whose outcomes belong there would never end. An engine implements it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "storage/record.h"

namespace loopfleet::storage {

struct OutcomeRepair {
  bool was_damaged = false;        // false: the file was not changed
  std::vector<OutcomePlace> lost;  // outcomes that are failures STORAGE_CORRUPT now
  std::string kept_as;             // the damaged table's new name
};

// Every outcome keeps its place. A lost one becomes a failure STORAGE_CORRUPT of a job that had an
// outcome, as the table's index tells; if the index is lost too, of the batch's first jobs without
// one. The damaged table stays in the file unchanged, as `outcomes_damaged_1` (2, 3 ...). One
// transaction, as long as writing all outcomes again.
//   kNotFound, kInvalid (not a loopfleet database, or made by a newer version)
//   kUnavailable  a coordinator has the file open: named by its pid
//   kCorrupt      damage that this cannot repair: restore a snapshot
//   kFull, kSystem
Result<OutcomeRepair> RepairOutcomes(const std::filesystem::path& path);

// Removes the damaged tables that repairs have kept, and returns their room to the disk by
// rewriting the file, which needs twice its size meanwhile. Returns how many there were. Errors as
// above; after one, call it again.
Result<std::uint64_t> DropKeptOutcomes(const std::filesystem::path& path);

}  // namespace loopfleet::storage
