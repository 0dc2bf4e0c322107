// Changed bits outside rows: in the log beside the database, and in the file's own header. No crash
// and no wrong answer: what is served is what was written; the rest is refused or reported.

#include <fmt/format.h>

#include <map>

#include "common/base/random.h"
#include "storage/database_check.h"
#include "tests/support/crash_vfs.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

constexpr std::uint64_t kBatches = 12;
constexpr int kFlips = 300;
constexpr std::size_t kHeaderBytes = 100;  // of a SQLite file

std::string Flipped(std::string bytes, std::size_t place, int bit) {
  bytes[place] = static_cast<char>(bytes[place] ^ 1 << bit);
  return bytes;
}

class FileDamageTest : public ScratchDatabase {
 protected:
  static Outcome Expected(std::uint64_t n) {
    return SomeOutcome({.batch = n}, PlainSpec(2), SomeMeasurement(static_cast<std::uint8_t>(n)));
  }
  static void Fill(Store& store) {
    for (std::uint64_t n = 1; n <= kBatches; ++n) {
      ASSERT_TRUE(
          store.Apply(std::vector<Write>{SomeBatch(n, {PlainSpec(2)}), JobFinished{Expected(n)}}));
    }
  }

  // The files on disk after Fill(): with the store closed, or open with its log beside the file.
  struct Files {
    std::string database;
    std::string log;
  };
  Files Closed() {
    CrashVfs disk;
    {
      Fill(*OpenStore());
    }
    return {.database = disk.Get(path()), .log = {}};
  }
  Files Open() {
    CrashVfs disk;
    const auto store = OpenStore();
    Fill(*store);
    return {.database = disk.Get(path()), .log = disk.Get(Log())};
  }
  std::filesystem::path Log() const { return path().string() + "-wal"; }

  // The number of batches found, each whole and none before it missing. Empty: refused with a typed
  // error.
  std::optional<std::uint64_t> Batches() {
    const auto store = SqliteStore::Open(path());
    if (!store) {
      EXPECT_FALSE(store.error().message.empty());
      return std::nullopt;
    }
    const auto reader = OpenReader();
    std::uint64_t there = 0;
    for (std::uint64_t n = 1; n <= kBatches; ++n) {
      const auto outcomes = reader->ReadOutcomes({n}, 0, {.max_rows = 10});
      if (!outcomes) return std::nullopt;
      if (outcomes->empty()) continue;
      EXPECT_EQ(there, n - 1) << "a batch in front of batch " << n << " is missing";
      there = n;
      if (outcomes->front().evaluation.ok()) {
        EXPECT_EQ(*outcomes, std::vector{Expected(n)});
      } else {
        EXPECT_EQ(outcomes->front().evaluation.failure().code, FailureCode::kStorageCorrupt);
      }
    }
    return there;
  }
};

// A log is a chain of checksums. From the first changed bit on it is not read, and its content is
// lost; what remains was acknowledged, and is whole. (A bit that changes in the log between a
// commit and the log's folding into the file loses that commit: only a snapshot, or the disk's own
// checksums, would help there.)
TEST_F(FileDamageTest, AChangedBitOfTheLogLeavesWhatWasBeforeIt) {
  const Files whole = Open();
  ASSERT_GT(whole.log.size(), 100'000u);
  SplitMix64 random(3);
  std::map<std::uint64_t, int> kept;
  for (int flip = 0; flip < kFlips && !HasFailure(); ++flip) {
    const std::size_t place = random.Below(whole.log.size());
    const int bit = static_cast<int>(random.Below(8));
    SCOPED_TRACE(fmt::format("bit {} of byte {}", bit, place));
    CrashVfs disk;
    disk.Put(path(), whole.database);
    disk.Put(Log(), Flipped(whole.log, place, bit));
    const auto there = Batches();
    ASSERT_TRUE(there) << "the file opens";
    ++kept[*there];
    EXPECT_TRUE(CheckDatabase(path())->ok());
    // Work goes on from there.
    ASSERT_TRUE(OpenStore()->Apply(std::vector<Write>{SomeBatch(*there + 1, {PlainSpec(2)})}));
  }
  EXPECT_GT(kept.size(), kBatches / 2) << "flips in front of many of the batches";
}

TEST_F(FileDamageTest, ALogThatIsCutOff) {
  const Files whole = Open();
  std::uint64_t before = 0;
  for (std::size_t size = 0; size <= whole.log.size() && !HasFailure(); size += 512) {
    SCOPED_TRACE(fmt::format("{} of {} bytes", size, whole.log.size()));
    CrashVfs disk;
    disk.Put(path(), whole.database);
    disk.Put(Log(), whole.log.substr(0, size));
    const auto there = Batches();
    ASSERT_TRUE(there);
    EXPECT_GE(*there, before);
    before = *there;
    EXPECT_TRUE(CheckDatabase(path())->ok());
  }
  EXPECT_GE(before, kBatches - 1);
}

TEST_F(FileDamageTest, EveryBitOfTheHeader) {
  const Files whole = Closed();
  int refused = 0;
  for (std::size_t place = 0; place < kHeaderBytes && !HasFailure(); ++place) {
    for (int bit = 0; bit < 8; ++bit) {
      SCOPED_TRACE(fmt::format("bit {} of byte {}", bit, place));
      CrashVfs disk;
      disk.Put(path(), Flipped(whole.database, place, bit));
      // Checked before a writer opens the file: that may repair a mere count.
      const auto check = CheckDatabase(path());
      const bool is_reported = !check || !check->ok();
      const auto there = Batches();
      refused += !there;
      EXPECT_TRUE(is_reported || !there || there == kBatches)
          << "rows are missing, and nobody said that anything is wrong";
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace loopfleet::storage
