#include "tests/simulation/disk/model_disk.h"

#include <utility>

namespace loopfleet::simulation {

void ModelDisk::CrashNow(Crash, std::span<const storage::Write> under_way, Dice& dice) {
  const bool was_durable = dice.Chance(0.5);
  if (!under_way.empty() && was_durable && !fails_next_ && store() != nullptr) {
    (void)store()->Apply(under_way);
  }
  fails_next_ = false;
  Close();
}

Status ModelDisk::Apply(std::span<const storage::Write> writes) {
  if (std::exchange(fails_next_, false)) return Fail(ErrorKind::kSystem, "EIO");
  return store()->Apply(writes);
}

}  // namespace loopfleet::simulation
