// A copy of a database that is being written is whole, independent and can be written on.

#include "storage/snapshot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "common/base/host_name.h"
#include "common/base/unique_fd.h"
#include "storage/database_check.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

using SnapshotTest = ScratchDatabase;

std::vector<Write> BatchOf(std::uint64_t id) {
  return {SomeBatch(id, {PlainSpec(2), PlainSpec(3)}),
          JobFinished{SomeOutcome({.batch = id, .index = 1}, PlainSpec(3),
                                  SomeMeasurement(static_cast<std::uint8_t>(id)))}};
}

TEST_F(SnapshotTest, WhileTheWriterWorks) {
  const auto store = OpenStore();
  ASSERT_TRUE(store->Apply(BatchOf(1)));
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> written{1};
  std::thread writer([&] {
    for (std::uint64_t id = 2; !stop; ++id) {
      if (!store->Apply(BatchOf(id))) return;
      written = id;
    }
  });
  for (int copy = 0; copy < 5; ++copy) {
    const auto to = directory() / fmt::format("copy{}.db", copy);
    const std::uint64_t before = written;
    const Status taken = TakeSnapshot(path(), to);
    EXPECT_TRUE(taken) << taken.error().message;
    if (!taken) break;
    EXPECT_TRUE(CheckDatabase(to).value().ok());
    EXPECT_GE(SqliteReader::Open(to).value()->NewestBatch().value()->batch.value, before);
    using std::filesystem::perms;
    EXPECT_EQ(std::filesystem::status(to).permissions(), perms::owner_read | perms::owner_write);
    EXPECT_FALSE(std::filesystem::exists(to.string() + "-wal"));
    for (const auto& file : std::filesystem::directory_iterator(directory())) {
      EXPECT_EQ(file.path().string().find(".unfinished"), std::string::npos) << file;
    }
  }
  stop = true;
  writer.join();
}

// Marks the first store's numbers, and takes two snapshots at the same moment.
struct RestoreTest : SnapshotTest {
  RestoreTest() {
    const auto store = OpenStore();
    lost = store->incarnation();
    for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_TRUE(store->Apply(BatchOf(id)));
    for (const char* name : {"one.db", "two.db"}) {
      EXPECT_TRUE(TakeSnapshot(path(), directory() / name));
    }
  }
  Uuid lost;
};

TEST_F(RestoreTest, ARestoredSnapshotIsAnotherHistory) {
  const auto restored = SqliteStore::Open(directory() / "one.db").value();
  EXPECT_FALSE(restored->incarnation().is_nil());
  EXPECT_NE(restored->incarnation(), lost);
  EXPECT_GT(restored->epoch(), 1'000u);
  EXPECT_GT(restored->RecoverBatches()->next_batch, 1'000'000u);
  EXPECT_EQ(restored->RecoverBatches()->incarnation, restored->incarnation());
  EXPECT_EQ(restored->OpenReader().value()->FirstOwnBatch().value().value,
            restored->RecoverBatches()->next_batch);
  EXPECT_EQ(OpenReader()->FirstOwnBatch().value(), BatchId{1});
}

TEST_F(RestoreTest, ItKeepsWhatWasUnfinishedThen) {
  const auto restored = SqliteStore::Open(directory() / "one.db").value();
  ASSERT_TRUE(restored->Apply(std::vector<Write>{
      JobFinished{SomeOutcome({.batch = 1, .sequence = 2}, PlainSpec(2), SomeMeasurement(9))}}));
  ASSERT_TRUE(restored->Apply(BatchOf(restored->RecoverBatches()->next_batch)));
  const std::map<BatchId, std::uint64_t> expected{
      {BatchId{1}, 1}, {BatchId{2}, 1}, {BatchId{3}, 1}};
  const auto restores = restored->OpenReader().value()->Restores().value();
  ASSERT_EQ(restores.size(), 1u);
  EXPECT_EQ(restores[0].lost, lost);
  EXPECT_EQ(restores[0].first_batch, restored->OpenReader().value()->FirstOwnBatch().value());
  EXPECT_EQ(restores[0].last_batch, BatchId{3});
  EXPECT_EQ(restores[0].unfinished, expected);
  EXPECT_TRUE(OpenReader()->Restores().value().empty());
}

TEST_F(RestoreTest, ASnapshotOfItIsRestored) {
  const auto to = directory() / "again.db";
  Uuid between;
  {
    const auto restored = SqliteStore::Open(directory() / "one.db").value();
    between = restored->incarnation();
    for (std::uint64_t id = 1; id <= 3; ++id) {
      ASSERT_TRUE(restored->Apply(std::vector<Write>{JobFinished{
          SomeOutcome({.batch = id, .sequence = 2}, PlainSpec(2), SomeMeasurement(9))}}));
    }
    ASSERT_TRUE(TakeSnapshot(directory() / "one.db", to));
  }
  const auto again = SqliteStore::Open(to).value();
  const auto restores = again->OpenReader().value()->Restores().value();
  ASSERT_EQ(restores.size(), 2u);
  EXPECT_EQ(restores[0].lost, lost);
  EXPECT_EQ(restores[0].unfinished.size(), 3u);
  EXPECT_EQ(restores[1].lost, between);
  EXPECT_TRUE(restores[1].unfinished.empty());
  EXPECT_LT(restores[0].first_batch, restores[1].first_batch);
  EXPECT_NE(again->incarnation(), between);
}

TEST_F(RestoreTest, ItsNumbersStayJumpedAndJumpOnce) {
  Uuid incarnation;
  std::uint64_t epoch = 0;
  std::uint64_t next_batch = 0;
  {
    const auto restored = SqliteStore::Open(directory() / "one.db").value();
    incarnation = restored->incarnation();
    epoch = restored->epoch();
    next_batch = restored->RecoverBatches()->next_batch;
    ASSERT_TRUE(restored->Apply(BatchOf(next_batch)));
  }
  const auto again = SqliteStore::Open(directory() / "one.db").value();
  EXPECT_EQ(again->incarnation(), incarnation);
  EXPECT_EQ(again->epoch(), epoch + 1);
  EXPECT_EQ(again->RecoverBatches()->next_batch, next_batch + 1);
}

TEST_F(RestoreTest, TwoRestoresOfOneMomentDiffer) {
  const auto one = SqliteStore::Open(directory() / "one.db").value();
  const auto two = SqliteStore::Open(directory() / "two.db").value();
  EXPECT_NE(one->incarnation(), two->incarnation());
  EXPECT_NE(one->RecoverBatches()->next_batch, two->RecoverBatches()->next_batch);
}

TEST_F(RestoreTest, TheDatabaseItWasTakenFromIsUnchanged) {
  const auto store = OpenStore();
  EXPECT_EQ(store->incarnation(), lost);
  EXPECT_EQ(store->epoch(), 2u);
  EXPECT_EQ(store->RecoverBatches()->next_batch, 4u);
}

// A restore is a start on the copy.
TEST_F(SnapshotTest, IsGoneOnWith) {
  const auto to = directory() / "copy.db";
  {
    const auto store = OpenStore();
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(store->Apply(BatchOf(id)));
    ASSERT_TRUE(TakeSnapshot(path(), to));
    ASSERT_TRUE(store->Apply(BatchOf(4)));  // not in the copy
  }
  const auto restored = SqliteStore::Open(to).value();
  const Recovery recovery = restored->Recover().value();
  EXPECT_EQ(recovery.jobs.size(), 3u);
  EXPECT_TRUE(restored->Apply(BatchOf(recovery.next_batch)));
  const auto reader = SqliteReader::Open(to).value();
  EXPECT_EQ(reader->ReadOutcomes({2}, 0, {.max_rows = 10}).value().size(), 1u);
  EXPECT_TRUE(reader->FindResult(KeyFor(SomeMeasurement(2))).value());
}

TEST_F(SnapshotTest, SeveralAtATimeDoNotWriteIntoOneFile) {
  const auto store = OpenStore();
  for (std::uint64_t id = 1; id <= 9; ++id) ASSERT_TRUE(store->Apply(BatchOf(id)));
  const auto to = directory() / "copy.db";
  const auto of_another = directory() / "copy.db.unfinished";
  std::ofstream(of_another) << "of another run";
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const Status status = TakeSnapshot(path(), to);
      if (status) ++taken;
      if (!status) {
        EXPECT_EQ(status.error().kind, ErrorKind::kExists) << status.error().message;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken.load(), 1);
  EXPECT_TRUE(CheckDatabase(to).value().ok());
  EXPECT_EQ(std::filesystem::file_size(of_another), 14u);
}

TEST_F(SnapshotTest, WhatAKilledOneLeftIsRemovedAndWhatIsBeingWrittenIsNot) {
  OpenStore();
  const auto folder_of = [&](const char* copy, const std::string& host) {
    const auto folder = directory() / fmt::format("{}.unfinished.1.1@{}", copy, host);
    std::filesystem::create_directory(folder);
    for (const char* file : {"copy.db", "copy.db-journal"}) std::ofstream(folder / file) << "half";
    return folder;
  };
  const auto left = folder_of("yesterday.db", HostName());
  const auto written = folder_of("now.db", HostName());
  const auto of_another_host = folder_of("yesterday.db", "another-" + HostName());
  const auto empty_of = [&](const char* name, std::chrono::seconds age) {
    const auto folder = directory() / fmt::format("{}.unfinished.2.1@{}", name, HostName());
    std::filesystem::create_directory(folder);
    std::filesystem::last_write_time(folder, std::filesystem::file_time_type::clock::now() - age);
    return folder;
  };
  const auto long_empty = empty_of("yesterday.db", std::chrono::hours(24));
  const auto just_made = empty_of("now.db", std::chrono::seconds(0));
  const UniqueFd lock(::open(written.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  ASSERT_TRUE(TakeSnapshot(path(), directory() / "copy.db"));
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_FALSE(std::filesystem::exists(long_empty));
  EXPECT_TRUE(std::filesystem::exists(just_made));
  EXPECT_TRUE(std::filesystem::exists(written / "copy.db-journal"));
  EXPECT_TRUE(std::filesystem::exists(of_another_host / "copy.db"));
}

TEST_F(SnapshotTest, NeverReplacesAFile) {
  OpenStore();
  const auto to = directory() / "copy.db";
  ASSERT_TRUE(TakeSnapshot(path(), to));
  EXPECT_EQ(TakeSnapshot(path(), to).error().kind, ErrorKind::kExists);
  EXPECT_EQ(TakeSnapshot(directory() / "none.db", to).error().kind, ErrorKind::kNotFound);
  EXPECT_FALSE(TakeSnapshot(path(), directory() / "no" / "copy.db"));
}

}  // namespace
}  // namespace loopfleet::storage
