#include "tests/simulation/disk/sqlite_disk.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/sqlite_store.h"

namespace loopfleet::simulation {

namespace {

constexpr const char* kFile = "simulated.db";

std::filesystem::path MakeDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "lf_simulation_XXXXXX").string();
  const char* made = ::mkdtemp(pattern.data());
  LF_CHECK(made != nullptr, "no directory {}", pattern);
  return made;
}

// Made once: it takes half of the time of a world, and power_failure_test.cc fails in the middle of
// it.
const std::string& NewStore() {
  static const std::string file = [] {
    const std::filesystem::path directory = MakeDirectory();
    const CrashVfs files;
    LF_CHECK(storage::SqliteStore::Open(directory / "new.db"), "no new store");
    std::filesystem::remove_all(directory);
    return files.Get(directory / "new.db");
  }();
  return file;
}

}  // namespace

SqliteDisk::SqliteDisk(std::uint64_t seed)
    : new_store_(NewStore()), files_(seed), directory_(MakeDirectory()) {
  files_.Put(directory_ / kFile, new_store_);
}

SqliteDisk::~SqliteDisk() {
  Close();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

Result<std::unique_ptr<storage::Store>> SqliteDisk::OpenStore() {
  const std::filesystem::path path = directory_ / kFile;
  LF_TRY(auto store, storage::SqliteStore::Open(path));
  LF_TRY(const auto connection,
         storage::Connection::Open(path, storage::Access::kReadOnly, storage::kBusyWait));
  LF_TRY(const std::int64_t damaged,
         connection->Number("SELECT count(*) FROM pragma_integrity_check "
                            "WHERE integrity_check <> 'ok'"));
  if (damaged != 0) return Fail(ErrorKind::kCorrupt, "the database is damaged");
  return store;
}

void SqliteDisk::CrashNow(Crash how, std::span<const storage::Write> under_way, Dice& dice) {
  if (!under_way.empty() && store() != nullptr) {
    files_.FailAt(files_.operations() + 1 + dice.Index(24), DiskFault::kDeath);
    (void)store()->Apply(under_way);
  }
  files_.Die();
  Close();  // which changes nothing any more
  if (how == Crash::kPower) {
    files_.Reboot(dice.Next());
  } else {
    files_.Restart();
  }
}

Status SqliteDisk::Apply(std::span<const storage::Write> writes) {
  const Status applied = store()->Apply(writes);
  files_.Mend();
  return applied;
}

}  // namespace loopfleet::simulation
