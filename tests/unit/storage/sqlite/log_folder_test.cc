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
constexpr std::uint64_t kPageBytes = 4096;

class LogFolderTest : public ScratchDatabase {
 protected:
  void Write(SqliteStore& store, std::uint64_t groups) {
    for (std::uint64_t end = next_ + groups; next_ < end; ++next_) {
      const auto applied = store.Apply(std::vector<storage::Write>{SomeBatch(next_, {FullSpec()})});
      ASSERT_TRUE(applied) << applied.error().message;
    }
  }
  std::uint64_t FileBytes() { return std::filesystem::file_size(path()); }
  std::uint64_t LogBytes() { return std::filesystem::file_size(path().string() + "-wal"); }

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
  constexpr std::uint32_t kLogPages = 64;
  const auto store = OpenStore({.log_pages = kLogPages, .fold_pages = 16});
  std::uint64_t longest = 0;
  for (int i = 0; i < 1'000; ++i) {
    Write(*store, 1);
    longest = std::max(longest, LogBytes());
  }
  EXPECT_LT(longest, 20 * kLogPages * kPageBytes);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM jobs"), 1'000);
}

}  // namespace
}  // namespace loopfleet::storage
