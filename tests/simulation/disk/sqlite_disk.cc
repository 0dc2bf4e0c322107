#include "tests/simulation/disk/sqlite_disk.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "storage/sqlite/sqlite.h"
#include "storage/sqlite/sqlite_store.h"

namespace loopfleet::simulation {

SqliteDisk::SqliteDisk(std::uint64_t seed) : files_(seed) {
  std::string pattern = (std::filesystem::temp_directory_path() / "lf_simulation_XXXXXX").string();
  const char* made = ::mkdtemp(pattern.data());
  LF_CHECK(made != nullptr, "no directory {}", pattern);
  directory_ = made;
}

SqliteDisk::~SqliteDisk() {
  Close();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

Result<std::unique_ptr<storage::Store>> SqliteDisk::OpenStore() {
  const std::filesystem::path path = directory_ / "simulated.db";
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
