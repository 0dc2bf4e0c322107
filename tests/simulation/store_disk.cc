#include "tests/simulation/store_disk.h"

#include "tests/simulation/model_disk.h"

namespace loopfleet::simulation {

std::unique_ptr<Disk> MakeStoreDisk(std::uint64_t) { return std::make_unique<ModelDisk>(); }

}  // namespace loopfleet::simulation
