// A process is killed (SIGKILL) while it migrates an old database, at each of its changes to a
// file. The next process always finds every row and completes the migration.

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string_view>

#include "tests/support/paths.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

// SQLite's own file system, except that the process dies before its n-th change to a file. Only for
// a forked process: nothing is restored.
class DeadlyDisk {
 public:
  static void DieAtChange(int n) {
    changes_left_ = n;
    base_ = ::sqlite3_vfs_find(nullptr);
    deadly_ = *base_;
    deadly_.zName = "deadly";
    deadly_.xOpen = Open;
    deadly_.xDelete = Delete;
    ::sqlite3_vfs_register(&deadly_, 1);
  }

 private:
  static void Change() {
    if (--changes_left_ == 0) ::kill(::getpid(), SIGKILL);
  }
  static int Delete(sqlite3_vfs*, const char* name, int sync) {
    Change();
    return base_->xDelete(base_, name, sync);
  }
  static int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out) {
    if ((flags & SQLITE_OPEN_CREATE) != 0) Change();
    const int code = base_->xOpen(base_, name, file, flags, out);
    if (file->pMethods == nullptr) return code;
    // SQLite has two method tables, with locks and without: both write with the same functions.
    changes_ = file->pMethods;
    const auto [methods, is_new] = methods_.try_emplace(file->pMethods, *file->pMethods);
    if (is_new) {
      methods->second.xWrite = [](sqlite3_file* f, const void* data, int size, sqlite3_int64 at) {
        Change();
        return changes_->xWrite(f, data, size, at);
      };
      methods->second.xTruncate = [](sqlite3_file* f, sqlite3_int64 size) {
        Change();
        return changes_->xTruncate(f, size);
      };
      methods->second.xSync = [](sqlite3_file* f, int how) {
        Change();
        return changes_->xSync(f, how);
      };
    }
    file->pMethods = &methods->second;
    return code;
  }

  static inline int changes_left_ = 0;
  static inline sqlite3_vfs* base_ = nullptr;
  static inline sqlite3_vfs deadly_{};
  static inline const sqlite3_io_methods* changes_ = nullptr;
  // Keyed by SQLite's own table.
  static inline std::map<const sqlite3_io_methods*, sqlite3_io_methods> methods_;
};

// Migrates databases that real clusters wrote.
class MigrationKillTest : public ScratchDatabase,
                          public ::testing::WithParamInterface<const char*> {
 protected:
  void PutOldDatabase() {
    for (const char* rest : {"", "-wal", "-shm", "-journal"}) {
      std::filesystem::remove(path().string() + rest);
    }
    std::filesystem::copy_file(
        std::filesystem::path(LOOPFLEET_SOURCE_DIR) / "tests/golden/storage" / GetParam(), path());
  }
  // Whether the process was killed before it had opened the database.
  bool OpenAndDieAtChange(int n) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      DeadlyDisk::DieAtChange(n);
      const auto store = SqliteStore::Open(path());
      ::_exit(store ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) {
      EXPECT_EQ(WTERMSIG(status), SIGKILL) << "change " << n;
      return true;
    }
    EXPECT_EQ(WEXITSTATUS(status), 0) << "change " << n;
    return false;
  }
};

TEST_P(MigrationKillTest, WhateverTheMomentTheNextOneFindsEveryRow) {
  PutOldDatabase();
  std::vector<Outcome> whole;
  {
    const auto store = OpenStore();
    whole = OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 10}).value();
  }
  ASSERT_GE(whole.size(), 2U);
  int deaths = 0;
  for (bool died = true; died; deaths += died ? 1 : 0) {
    PutOldDatabase();
    died = OpenAndDieAtChange(deaths + 1);
    const auto store = OpenStore();
    EXPECT_EQ(OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 10}).value(), whole)
        << "change " << deaths + 1;
    EXPECT_EQ(NumberByHand("SELECT count(*) FROM known_failures"), 0);  // a table of version 4
    EXPECT_EQ(NumberByHand("SELECT count(*) FROM retention"), 0);       // a table of version 6
    EXPECT_EQ(NumberByHand("SELECT count(*) FROM results WHERE thinned_by IS NOT NULL"), 0);
    if (HasFailure()) break;
  }
  // Each missing version writes and syncs pages, and what is complete stays so.
  EXPECT_GT(deaths, std::string_view(GetParam()) == "version1.db" ? 20 : 10);
}

INSTANTIATE_TEST_SUITE_P(From, MigrationKillTest, ::testing::Values("version1.db", "version5.db"),
                         [](const auto& from) {
                           return from.index == 0 ? "Version1" : "Version5";
                         });

}  // namespace
}  // namespace loopfleet::storage
