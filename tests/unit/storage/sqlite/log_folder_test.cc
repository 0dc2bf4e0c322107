#include "storage/sqlite/log_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

constexpr std::uint32_t kNever = 1'000'000;  // pages

class LogFolderTest : public ScratchDatabase {
 protected:
  void Write(SqliteStore& store, std::uint64_t groups) {
    for (std::uint64_t end = next_ + groups; next_ < end; ++next_) {
      const auto applied = store.Apply(std::vector<storage::Write>{SomeBatch(next_, {FullSpec()})});
      ASSERT_TRUE(applied) << applied.error().message;
    }
  }
  std::uint64_t FileBytes() { return std::filesystem::file_size(path()); }
  static std::uint64_t LogBytes(const std::filesystem::path& database) {
    return std::filesystem::file_size(database.string() + "-wal");
  }

 private:
  std::uint64_t next_ = 1;
};

TEST_F(LogFolderTest, FoldsBesideTheWriter) {
  const auto store = OpenStore({.log_pages = kNever, .fold_pages = 16});
  const std::uint64_t before = FileBytes();
  Write(*store, 200);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (FileBytes() == before && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GT(FileBytes(), before);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM jobs"), 200);
}

TEST_F(LogFolderTest, WithoutItNothingIsFolded) {
  const auto store = OpenStore({.log_pages = kNever, .fold_pages = 0});
  const std::uint64_t before = FileBytes();
  Write(*store, 200);
  EXPECT_EQ(FileBytes(), before);
}

TEST_F(LogFolderTest, TheLogBeginsAgainAlthoughTheWriterNeverStops) {
  const auto store = OpenStore({.log_pages = 64, .fold_pages = 16});
  std::uint64_t longest = 0;
  for (int i = 0; i < 1'000; ++i) {
    Write(*store, 1);
    longest = std::max(longest, LogBytes(path()));
  }
  // How long it gets is up to the host. Without an end it would be as long as this one.
  const auto endless = directory() / "endless.db";
  const auto unfolded = SqliteStore::Open(endless, {.log_pages = kNever, .fold_pages = 0});
  ASSERT_TRUE(unfolded) << unfolded.error().message;
  Write(**unfolded, 1'000);
  EXPECT_LT(longest, LogBytes(endless) / 2);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM jobs"), 1'000);
}

}  // namespace
}  // namespace loopfleet::storage
