// The log is folded beside the writer: it stays as short as it does without that, and readers see
// what they would see.

#include "storage/checkpointer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

constexpr StoreOptions kOptions{.log_pages = 256, .fold = StoreOptions::Fold::kAside};
constexpr std::uintmax_t kPageInLogBytes = 4096 + 24;  // and what the log says of it
// With room for one transaction, and for those that made the tables.
constexpr std::uintmax_t kLongestLogBytes = 2 * kOptions.log_pages * kPageInLogBytes;

std::vector<Write> Group(std::uint64_t n) {
  return {SomeBatch(n, {PlainSpec(2), PlainSpec(3)}),
          JobFinished{SomeOutcome({.batch = n, .index = 1, .sequence = 1}, PlainSpec(3),
                                  SomeMeasurement(static_cast<std::uint8_t>(n)))}};
}

class CheckpointerTest : public ScratchDatabase {
 protected:
  // Groups from `first` on; how long the log was at most.
  std::uintmax_t Write(Store& store, std::uint64_t first, std::uint64_t count) {
    std::uintmax_t longest = 0;
    for (std::uint64_t n = first; n < first + count; ++n) {
      const Status applied = store.Apply(Group(n));
      EXPECT_TRUE(applied) << applied.error().message;
      longest = std::max(longest, std::filesystem::file_size(path().native() + "-wal"));
    }
    return longest;
  }
};

TEST_F(CheckpointerTest, TheLogStaysShort) {
  const auto store = OpenStore(kOptions);
  EXPECT_LE(Write(*store, 1, 1'000), kLongestLogBytes);  // of some ten times as much
}

TEST_F(CheckpointerTest, WhatWasAppliedIsThere) {
  {
    const auto store = OpenStore(kOptions);
    Write(*store, 1, 300);
    const auto reader = OpenReader();
    for (std::uint64_t n = 1; n <= 300; ++n) {
      EXPECT_EQ(reader->ReadOutcomes({n}, 0, 10).value().size(), 1u) << "batch " << n;
    }
  }
  const auto store = OpenStore(kOptions);
  const Recovery recovery = store->Recover().value();
  EXPECT_EQ(recovery.next_batch, 301u);
  EXPECT_EQ(recovery.jobs.size(), 300u);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM pragma_integrity_check "
                         "WHERE integrity_check <> 'ok'"),
            0);
}

TEST_F(CheckpointerTest, AReaderThatStaysHoldsUpTheLogAndNobody) {
  const auto store = OpenStore(kOptions);
  Write(*store, 1, 10);
  const auto reader = OpenByHand();
  ASSERT_TRUE(reader->Run("BEGIN"));
  ASSERT_EQ(reader->Number("SELECT count(*) FROM outcomes").value(), 10);
  const std::uintmax_t held_up = Write(*store, 11, 300);
  EXPECT_GT(held_up, kLongestLogBytes);
  EXPECT_EQ(reader->Number("SELECT count(*) FROM outcomes").value(), 10);
  ASSERT_TRUE(reader->Run("COMMIT"));
  EXPECT_EQ(reader->Number("SELECT count(*) FROM outcomes").value(), 310);
  // It is folded and begun anew, so the file does not grow.
  Write(*store, 311, 1);
  EXPECT_EQ(Write(*store, 312, 300), held_up);
}

}  // namespace
}  // namespace loopfleet::storage
