// What the last writer left, read piece by piece while the next one writes.

#include "storage/unfinished_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "storage/sqlite/maintenance/database_check.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

std::uint64_t thousands_of_steps = 0;

// Counts what the virtual machines of all connections that are opened from now on do.
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
  // What is read next, about `max`.
  std::vector<JobId> Read(std::size_t max) {
    std::vector<UnfinishedJob> jobs;
    const Status status = unfinished_->Read(max, jobs, damaged_);
    EXPECT_TRUE(status) << status.error().message;
    std::vector<JobId> ids;
    for (const UnfinishedJob& job : jobs) ids.push_back(job.job);
    return ids;
  }

  std::unique_ptr<Store> store_ = OpenStore();
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

// A page of the file, not a row: what lies beside it is found all the same, and what is lost is
// told.
class DamagedPageTest : public UnfinishedJobsTest {
 protected:
  static constexpr std::uint32_t kJobs = 9'000;

  // Fills a page of the tree, from the middle of those of its kind, with nonsense.
  void Damage(std::string_view kind, std::string_view tree = "jobs") {
    CloseAll();
    const std::string of_kind = fmt::format(
        "FROM dbstat WHERE name = '{}' AND pagetype = '{}' AND path <> '/'", tree, kind);
    const auto pages = NumberByHand(("SELECT count(*) " + of_kind).c_str());
    ASSERT_GT(pages, 1);
    Overwrite(NumberByHand(
        fmt::format("SELECT pageno {} ORDER BY path LIMIT 1 OFFSET {}", of_kind, pages / 2)
            .c_str()));
  }
  void CloseAll() {  // then all of it is in the file
    unfinished_.reset();
    reader_.reset();
    store_.reset();
  }
  // The leaf that the tree ends with.
  void DamageLast(std::string_view tree) {
    CloseAll();
    Overwrite(NumberByHand(fmt::format("SELECT pageno FROM dbstat WHERE name = '{}' AND "
                                       "pagetype = 'leaf' ORDER BY path DESC LIMIT 1",
                                       tree)
                               .c_str()));
  }
  void Overwrite(std::int64_t page) {
    const auto size = NumberByHand("PRAGMA page_size");
    std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp((page - 1) * size);
    file << std::string(static_cast<std::size_t>(size), '\x5a');
    file.close();
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
  // Each job is there or told as damaged, once; and so many of them at most are damaged.
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
  Damage("leaf");
  ExpectAllButAFew(200);
}

TEST_F(DamagedPageTest, APageAboveLeavesTakesTheirJobs) {
  MustApply({SomeBatch(1, std::vector(kJobs, PlainSpec(2))), SomeBatch(2, {PlainSpec(2)})});
  Damage("internal");
  ExpectAllButAFew(kJobs / 2);
}

// A batch of which all jobs but the last thousand have finished, and another.
class DamagedOutcomesTest : public DamagedPageTest {
 protected:
  static constexpr std::uint32_t kFinished = kJobs - 1'000;

  void Fill() {
    MustApply({SomeBatch(1, std::vector(kJobs, PlainSpec(2))), SomeBatch(2, {PlainSpec(2)})});
    std::vector<Write> finish;
    for (std::uint32_t i = 0; i < kFinished; ++i) finish.push_back(Finish(1, i, i + 1));
    MustApply(std::move(finish));
  }
  // In the order of their sequences, with no gap, of the jobs in their order; so many are lost.
  std::size_t LostAmongAll() {
    std::vector<Outcome> all;
    const auto reader = OpenReader();
    while (true) {
      const auto more = reader->ReadOutcomes({1}, all.size(), 700);
      EXPECT_TRUE(more) << more.error().message;
      if (!more || more->empty()) break;
      all.insert(all.end(), more->begin(), more->end());
    }
    std::size_t lost = 0;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].job, (JobId{{1}, i}));
      EXPECT_EQ(all[i].sequence, i + 1);
      lost += all[i].evaluation.failure().code == FailureCode::kStorageCorrupt ? 1 : 0;
    }
    read_ = all.size();
    return lost;
  }
  std::vector<JobId> Unfinished() {
    std::vector<JobId> ids;
    for (std::uint32_t i = kFinished; i < kJobs; ++i) ids.push_back({{1}, i});
    ids.push_back({{2}, 0});
    return ids;
  }
  // What the check says of the table; "": nothing.
  std::string SaidByTheCheck(std::string_view table) {
    const DatabaseCheck check = CheckDatabase(path()).value();
    const auto one = std::ranges::find(check.damage, table, &loopfleet::storage::Damage::table);
    return one == check.damage.end() ? "" : one->row + ": " + one->what;
  }

  std::size_t read_ = 0;
};

TEST_F(DamagedOutcomesTest, APageOfTheIndexTakesNothingWithIt) {
  Fill();
  for (int times = 0; times < 2; ++times) {
    Damage("leaf", "sqlite_autoindex_outcomes_2");
    EXPECT_EQ(store_->TakeDamagedCount(), 0u);
    EXPECT_EQ(ReadAll(5'000), Unfinished());
    EXPECT_TRUE(damaged_.empty());
    EXPECT_EQ(LostAmongAll(), 0u);
    EXPECT_EQ(read_, kFinished);
  }
  EXPECT_NE(SaidByTheCheck("outcomes_damaged_1"), "");
  EXPECT_NE(SaidByTheCheck("outcomes_damaged_2"), "");
  EXPECT_EQ(SaidByTheCheck("outcomes"), "");
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results"), kFinished);
  for (std::uint32_t i = kFinished; i < kJobs; ++i) MustApply({Finish(1, i, i + 1)});
  EXPECT_EQ(ReadAll(5'000), (std::vector<JobId>{{{2}, 0}}));
}

// The jobs that are left need no room there.
TEST_F(DamagedOutcomesTest, APageOfRowsKeepsNobodyFromStarting) {
  for (const std::string_view kind : {"leaf", "internal"}) {
    Fill();
    Damage(kind, "outcomes");
    EXPECT_EQ(ReadAll(5'000), Unfinished());
    EXPECT_NE(SaidByTheCheck("outcomes") + SaidByTheCheck("outcomes_damaged_1"), "");
    MustApply({Finish(1, kFinished, kFinished + 1), Finish(2, 0, 1)});
    CloseAll();
    std::filesystem::remove(path());
    store_ = OpenStore();
  }
}

// The place of the next outcome is on it.
TEST_F(DamagedOutcomesTest, WhereARowIsToBeWrittenTheTableIsMadeAnew) {
  for (const std::string_view tree : {"outcomes", "sqlite_autoindex_outcomes_2"}) {
    Fill();
    DamageLast(tree);
    const std::size_t lost = store_->TakeDamagedCount();
    EXPECT_EQ(lost > 0, tree == "outcomes");
    EXPECT_LT(lost, 200u);
    EXPECT_EQ(ReadAll(5'000), Unfinished());
    EXPECT_EQ(LostAmongAll(), lost);
    EXPECT_EQ(OpenReader()->FindBatch({1}).value()->failed, kFinished);
    MustApply({Finish(1, kFinished, kFinished + 1), Finish(2, 0, 1)});
    EXPECT_NE(SaidByTheCheck("outcomes_damaged_1"), "");
    EXPECT_EQ(SaidByTheCheck("outcomes"), "");
    CloseAll();
    std::filesystem::remove(path());
    store_ = OpenStore();
  }
}

// No batch was under way when it was opened, so nobody looked.
TEST_F(DamagedOutcomesTest, ARowThatMeetsThePageLaterMakesItAnewThen) {
  MustApply({SomeBatch(1, std::vector(kJobs, PlainSpec(2)))});
  std::vector<Write> finish;
  for (std::uint32_t i = 0; i < kJobs; ++i) finish.push_back(Finish(1, i, i + 1));
  MustApply(std::move(finish));
  DamageLast("outcomes");
  EXPECT_EQ(store_->TakeDamagedCount(), 0u);
  MustApply({SomeBatch(2, {PlainSpec(2)}), Finish(2, 0, 1)});
  const std::size_t lost = store_->TakeDamagedCount();
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(LostAmongAll(), lost);
  EXPECT_EQ(read_, kJobs);
  EXPECT_EQ(OpenReader()->ReadOutcomes({2}, 0, 10).value().size(), 1u);
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
    // 16,384 entries of an index are looked at, and no row that has finished is read.
    EXPECT_LT(thousands_of_steps - before, 200u);
  }
  EXPECT_EQ(all, (std::vector<JobId>{{{1}, kJobs - 1}}));
  EXPECT_GT(pieces, 1);
  EXPECT_GT(thousands_of_steps, 0u);
}

}  // namespace
}  // namespace loopfleet::storage
