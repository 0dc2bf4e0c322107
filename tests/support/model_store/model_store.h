#pragma once
// ModelStore: a Store in maps, as plain as its contract allows. The simulation runs on it, and the
// conformance suite holds it and the real engines to the same contract
// (tests/unit/storage/conformance_test.cc). One thread; nothing is ever damaged.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "storage/store.h"
#include "tests/support/model_store/model_database.h"

namespace loopfleet::storage {

class ModelStore final : public Store {
 public:
  //   kFull  the epoch cannot be written
  static Result<std::unique_ptr<ModelStore>> Open(ModelDatabase& database);

  Result<Recovery> RecoverBatches() override;
  std::uint64_t epoch() const override { return epoch_; }
  const Uuid& incarnation() const override { return database_.incarnation; }
  Result<std::unique_ptr<StoreReader>> OpenReader() override;
  using Store::Apply;
  Status Apply(WriteGroup group) override;
  std::uint64_t TakeDamagedCount() override { return 0; }
  Status FlagMore() override { return {}; }
  bool HasMoreToFlag() const override { return false; }  // Apply() flags all
  // A pass is one step.
  Status Thin(Thinning& pass, WallTime now) override;
  Status Prune(Pruning& pass, WallTime now) override;
  Result<std::uint64_t> ForgetFailures(const FailureFilter& filter) override;
  Status Compact() override { return {}; }

 private:
  explicit ModelStore(ModelDatabase& database);

  struct Writer;  // one overload for each kind of write
  ModelDatabase& database_;
  const std::uint64_t epoch_;
  std::vector<std::function<void()>> undo_;  // of the group being applied
};

}  // namespace loopfleet::storage
