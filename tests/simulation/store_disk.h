#pragma once
// The real storage (storage/store.h, the event loop's readers and admission) on SQLite, on a file
// system in memory that loses what was not synced when the power fails (crash_vfs.h).

#include <cstdint>
#include <memory>

#include "tests/simulation/disk.h"

namespace loopfleet::simulation {

std::unique_ptr<Disk> MakeStoreDisk(std::uint64_t seed);

}  // namespace loopfleet::simulation
