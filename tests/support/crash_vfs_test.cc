#include "tests/support/crash_vfs.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

namespace loopfleet {
namespace {

// A database with one table, as durable as storage makes its own.
class Database {
 public:
  Database() {
    EXPECT_EQ(sqlite3_open("/simulated.db", &database_), SQLITE_OK);
    Run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  }
  ~Database() { sqlite3_close(database_); }
  int Run(const std::string& sql) {
    return sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr);
  }
  int Count() {
    int count = -1;
    sqlite3_exec(
        database_, "SELECT count(*) FROM rows",
        [](void* to, int, char** values, char**) {
          *static_cast<int*>(to) = std::stoi(values[0]);
          return 0;
        },
        &count, nullptr);
    return count;
  }

 private:
  sqlite3* database_ = nullptr;
};

// Commits row after row until the file system dies; tells how many were acknowledged.
int CommitUntilDeath() {
  Database database;
  int committed = 0;
  while (database.Run("INSERT INTO rows VALUES (zeroblob(3000))") == SQLITE_OK) ++committed;
  return committed;
}

TEST(CrashVfs, WhatWasSyncedSurvivesAPowerFailureAndNothingIsHalfDone) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CrashVfs files(seed);
    {
      EXPECT_EQ(Database().Run("CREATE TABLE rows (data)"), SQLITE_OK);
    }
    files.FailAt(files.operations() + 1 + seed, DiskFault::kDeath);
    const int committed = CommitUntilDeath();
    files.Reboot(seed);
    Database database;
    const int found = database.Count();
    EXPECT_GE(found, committed) << "seed " << seed;
    EXPECT_LE(found, committed + 1) << "seed " << seed;
    EXPECT_EQ(database.Run("PRAGMA integrity_check"), SQLITE_OK);
  }
}

TEST(CrashVfs, WithoutSyncsAcknowledgedRowsAreLost) {
  int lost = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CrashVfs files(seed);
    {
      EXPECT_EQ(Database().Run("CREATE TABLE rows (data)"), SQLITE_OK);
    }
    files.IgnoreSyncs();
    files.FailAt(files.operations() + 100 + seed, DiskFault::kDeath);
    const int committed = CommitUntilDeath();
    files.Reboot(seed);
    if (Database().Count() < committed) ++lost;
  }
  EXPECT_GT(lost, 10);
}

TEST(CrashVfs, AKilledProcessLosesNothingThatItWrote) {
  CrashVfs files(1);
  {
    EXPECT_EQ(Database().Run("CREATE TABLE rows (data)"), SQLITE_OK);
  }
  files.FailAt(files.operations() + 90, DiskFault::kDeath);
  const int committed = CommitUntilDeath();
  EXPECT_GT(committed, 0);
  files.Restart();
  EXPECT_GE(Database().Count(), committed);
}

TEST(CrashVfs, AFullDiskAndAFailureAreSaidAndPass) {
  CrashVfs files(1);
  Database database;
  EXPECT_EQ(database.Run("CREATE TABLE rows (data)"), SQLITE_OK);
  files.SetFull(true);
  EXPECT_EQ(database.Run("INSERT INTO rows VALUES (zeroblob(30000))"), SQLITE_FULL);
  files.SetFull(false);
  EXPECT_EQ(database.Run("INSERT INTO rows VALUES (zeroblob(30000))"), SQLITE_OK);
  files.FailAt(files.operations() + 1, DiskFault::kIoError);
  EXPECT_EQ(database.Run("INSERT INTO rows VALUES (zeroblob(30000))"), SQLITE_IOERR);
  EXPECT_EQ(database.Run("INSERT INTO rows VALUES (zeroblob(30000))"), SQLITE_OK);
  EXPECT_EQ(database.Count(), 2);
}

}  // namespace
}  // namespace loopfleet
