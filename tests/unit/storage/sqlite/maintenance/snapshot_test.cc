// A copy of a database that is being written is whole, independent and can be written on.

#include "storage/sqlite/maintenance/snapshot.h"

#include <fmt/format.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "storage/sqlite/maintenance/database_check.h"
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
    EXPECT_GE(StoreReader::Open(to).value()->NewestBatch().value()->batch.value, before);
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

// A restore is a start on the copy.
TEST_F(SnapshotTest, IsGoneOnWith) {
  const auto to = directory() / "copy.db";
  {
    const auto store = OpenStore();
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(store->Apply(BatchOf(id)));
    ASSERT_TRUE(TakeSnapshot(path(), to));
    ASSERT_TRUE(store->Apply(BatchOf(4)));  // not in the copy
  }
  const auto restored = Store::Open(to).value();
  EXPECT_EQ(restored->epoch(), 2u);
  const Recovery recovery = restored->Recover().value();
  EXPECT_EQ(recovery.next_batch, 4u);
  EXPECT_EQ(recovery.jobs.size(), 3u);
  EXPECT_TRUE(restored->Apply(BatchOf(4)));
  const auto reader = StoreReader::Open(to).value();
  EXPECT_EQ(reader->ReadOutcomes({2}, 0, 10).value().size(), 1u);
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
