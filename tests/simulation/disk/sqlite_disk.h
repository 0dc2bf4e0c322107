#pragma once
// SqliteDisk: the real storage on SQLite, on a file system in memory that loses what was not synced
// when the power fails (tests/support/crash_vfs.h).

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "tests/simulation/disk/store_disk.h"
#include "tests/support/crash_vfs.h"

namespace loopfleet::simulation {

class SqliteDisk final : public StoreDisk {
 public:
  explicit SqliteDisk(std::uint64_t seed);
  ~SqliteDisk() override;

  void CrashNow(Crash how, std::span<const storage::Write> under_way, Dice& dice) override;
  Status Apply(std::span<const storage::Write> writes) override;
  void SetFull(bool full) override { files_.SetFull(full); }
  void FailNextApply(Dice& dice) override {
    files_.FailAt(files_.operations() + 1 + dice.Index(8), DiskFault::kIoError);
  }

  CrashVfs& files() { return files_; }

 private:
  Result<std::unique_ptr<storage::Store>> OpenStore() override;

  const std::string& new_store_;  // a file; first, because it is made on a CrashVfs of its own
  CrashVfs files_;
  std::filesystem::path directory_;  // for the lock file, which is a real one
};

}  // namespace loopfleet::simulation
