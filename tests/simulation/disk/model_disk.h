#pragma once
// ModelDisk: a store in maps (tests/support/model_store).

#include <memory>

#include "tests/simulation/disk/store_disk.h"
#include "tests/support/model_store/model_store.h"

namespace loopfleet::simulation {

class ModelDisk final : public StoreDisk {
 public:
  ~ModelDisk() override { Close(); }

  void CrashNow(Crash how, std::span<const storage::Write> under_way, Dice& dice) override;
  Status Apply(std::span<const storage::Write> writes) override;
  void SetFull(bool full) override { database_.is_full = full; }
  void FailNextApply(Dice&) override { fails_next_ = true; }

 private:
  Result<std::unique_ptr<storage::Store>> OpenStore() override {
    return storage::ModelStore::Open(database_);
  }

  storage::ModelDatabase database_;
  bool fails_next_ = false;
};

}  // namespace loopfleet::simulation
