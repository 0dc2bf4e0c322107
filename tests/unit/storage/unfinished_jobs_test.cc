// The jobs that the last writer left are read in pieces while the next one writes.

#include "storage/unfinished_jobs.h"

#include <algorithm>

#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

std::uint64_t thousands_of_steps = 0;

// Counts the virtual machine's steps on every connection opened from now on.
int CountSteps(sqlite3* database, char**, const sqlite3_api_routines*) {
  const auto count = [](void*) {
    ++thousands_of_steps;
    return 0;
  };
  sqlite3_progress_handler(database, 1000, count, nullptr);
  return SQLITE_OK;
}

class UnfinishedJobsTest : public ScratchDatabase {
 protected:
  void MustApply(std::vector<Write> writes) {
    const Status status = store_->Apply(writes);
    ASSERT_TRUE(status) << status.error().message;
  }
  static Write Finish(std::uint64_t batch, std::uint32_t index, std::uint64_t sequence) {
    return JobFinished{SomeOutcome({.batch = batch, .index = index, .sequence = sequence},
                                   PlainSpec(2), BareFailure(FailureCode::kInvalidAction))};
  }
  void Start() {
    reader_ = OpenReader();
    unfinished_ = reader_->ReadUnfinished(store_->RecoverBatches().value().unfinished);
  }
  // Reads the next jobs, about `max`.
  std::vector<JobId> Read(std::size_t max) {
    std::vector<UnfinishedJob> jobs;
    const Status status = unfinished_->Read(max, jobs, damaged_);
    EXPECT_TRUE(status) << status.error().message;
    std::vector<JobId> ids;
    for (const UnfinishedJob& job : jobs) ids.push_back(job.job);
    return ids;
  }

  std::unique_ptr<SqliteStore> store_ = OpenStore();
  std::unique_ptr<StoreReader> reader_;
  std::unique_ptr<UnfinishedJobs> unfinished_;
  std::vector<JobId> damaged_;
};

TEST_F(UnfinishedJobsTest, WhatIsAcceptedAndFinishedMeanwhileIsPassedOver) {
  JobsAccepted open = SomeBatch(2, std::vector(3, PlainSpec(2)));
  open.closes_batch = false;
  MustApply({SomeBatch(1, std::vector(3, PlainSpec(2))), open, Finish(2, 0, 1)});
  Start();
  EXPECT_EQ(Read(1), (std::vector<JobId>{{{1}, 0}}));
  JobsAccepted append = SomeBatch(2, std::vector(2, PlainSpec(2)));
  append.request_id.bytes[0] ^= 1;
  append.new_batch = false;
  append.first_index = 3;
  MustApply({append, Finish(2, 4, 2), Finish(2, 1, 3)});
  EXPECT_EQ(Read(100), (std::vector<JobId>{{{1}, 1}, {{1}, 2}, {{2}, 2}}));
  EXPECT_TRUE(unfinished_->at_end());
  EXPECT_TRUE(damaged_.empty());
}

TEST_F(UnfinishedJobsTest, RowsThatAreGoneAreDamagedWhereverTheyWere) {
  MustApply({SomeBatch(1, std::vector(8, PlainSpec(2))), Finish(1, 2, 1), Finish(1, 6, 2)});
  RunByHand("DELETE FROM jobs WHERE idx IN (0, 2, 3, 7)");
  for (const std::size_t max : {1, 2, 3, 100}) {
    damaged_.clear();
    Start();
    std::vector<JobId> all;
    while (!unfinished_->at_end()) {
      for (const JobId id : Read(max)) all.push_back(id);
    }
    EXPECT_EQ(all, (std::vector<JobId>{{{1}, 1}, {{1}, 4}, {{1}, 5}})) << max;
    EXPECT_EQ(damaged_, (std::vector<JobId>{{{1}, 0}, {{1}, 3}, {{1}, 7}})) << max;
  }
}

// A damaged page, not a row: jobs on other pages are still found, and lost ones are reported.
class DamagedPageTest : public UnfinishedJobsTest {
 protected:
  static constexpr std::uint32_t kJobs = 9'000;

  void Damage(PageKind kind) {
    unfinished_.reset();
    reader_.reset();
    store_.reset();
    DamagePage("jobs", kind);
    store_ = OpenStore();
  }
  std::vector<JobId> ReadAll(std::size_t max) {
    Start();
    std::vector<JobId> all;
    for (int pieces = 0; !unfinished_->at_end() && pieces < 100'000; ++pieces) {
      for (const JobId id : Read(max)) all.push_back(id);
    }
    EXPECT_TRUE(unfinished_->at_end());
    return all;
  }
  // Expects each job once, read or reported as damaged, and fewer than `most` of them damaged.
  void ExpectAllButAFew(std::size_t most) {
    for (const std::size_t max : {std::size_t{100}, std::size_t{5'000}}) {
      damaged_.clear();
      std::vector<JobId> all = ReadAll(max);
      EXPECT_GT(damaged_.size(), 0u) << "then nothing was damaged";
      EXPECT_LT(damaged_.size(), most);
      all.insert(all.end(), damaged_.begin(), damaged_.end());
      std::ranges::sort(all);
      std::vector<JobId> each;
      for (std::uint32_t i = 0; i < kJobs; ++i) each.push_back({{1}, i});
      each.push_back({{2}, 0});
      EXPECT_EQ(all, each);
    }
  }
};

TEST_F(DamagedPageTest, ALeafTakesItsOwnJobsWithItAndNoOthers) {
  MustApply({SomeBatch(1, std::vector(kJobs, PlainSpec(2))), SomeBatch(2, {PlainSpec(2)})});
  Damage(PageKind::kMiddleLeaf);
  ExpectAllButAFew(200);
}

TEST_F(DamagedPageTest, APageAboveLeavesTakesTheirJobs) {
  MustApply({SomeBatch(1, std::vector(kJobs, PlainSpec(2))), SomeBatch(2, {PlainSpec(2)})});
  Damage(PageKind::kMiddleInternal);
  ExpectAllButAFew(kJobs / 2);
}

TEST_F(UnfinishedJobsTest, APieceOfWhatHasMostlyFinishedIsNoLargerThanOthers) {
  constexpr std::uint32_t kJobs = 60'000;
  MustApply({SomeBatch(1, std::vector(kJobs, PlainSpec(2)))});
  std::vector<Write> finish;
  for (std::uint32_t i = 0; i + 1 < kJobs; ++i) finish.push_back(Finish(1, i, i + 1));
  MustApply(std::move(finish));
  sqlite3_auto_extension(reinterpret_cast<void (*)()>(&CountSteps));
  Start();
  sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(&CountSteps));
  std::vector<JobId> all;
  int pieces = 0;
  for (; !unfinished_->at_end(); ++pieces) {
    const std::uint64_t before = thousands_of_steps;
    for (const JobId id : Read(10)) all.push_back(id);
    // Examines 16,384 entries of an index, and reads no row of a finished job.
    EXPECT_LT(thousands_of_steps - before, 200u);
  }
  EXPECT_EQ(all, (std::vector<JobId>{{{1}, kJobs - 1}}));
  EXPECT_GT(pieces, 1);
  EXPECT_GT(thousands_of_steps, 0u);
}

}  // namespace
}  // namespace loopfleet::storage
