// Batches that finished long ago are removed whole, in steps; results stay and answer.

#include "storage/pruning.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "storage/database_check.h"
#include "storage/sqlite/maintenance/pruning_table.h"
#include "tests/support/crash_vfs.h"
#include "tests/support/paths.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

constexpr WallTime kOld{std::chrono::days(1000)};
constexpr WallTime kCutoff{std::chrono::days(1001)};
constexpr WallTime kNew{std::chrono::days(1002)};
constexpr WallTime kNow{std::chrono::days(2000)};
constexpr std::uint32_t kRowsPerStep = PruningTable::kRowsPerStep;

PruningRule Rule() { return {.finished_before = kCutoff, .asked_by = "a test"}; }

JobsAccepted Accepted(std::uint64_t n, WallTime accepted_at, std::uint32_t jobs = 1) {
  JobsAccepted accepted = SomeBatch(n, std::vector<JobSpec>(jobs, PlainSpec(3)));
  accepted.accepted_at = accepted_at;
  return accepted;
}

JobFinished Finished(std::uint64_t n, WallTime finished_at, Evaluation evaluation,
                     std::uint32_t index = 0) {
  JobFinished finished{SomeOutcome({.batch = n, .index = index, .sequence = index + 1},
                                   PlainSpec(3), std::move(evaluation))};
  finished.outcome.finished_at = finished_at;
  return finished;
}

class PruningTest : public ScratchDatabase {
 protected:
  static void Put(Store& store, std::vector<Write> writes) {
    const Status applied = store.Apply(writes);
    ASSERT_TRUE(applied) << applied.error().message;
  }
  // Batch n with one measured job.
  static void PutMeasured(Store& store, std::uint64_t n, WallTime at) {
    Put(store,
        {Accepted(n, at), Finished(n, at, SomeMeasurement(static_cast<std::uint8_t>(n % 250)))});
  }
  // Batch n with `jobs` jobs that failed.
  static void PutFailed(Store& store, std::uint64_t n, WallTime at, std::uint32_t jobs) {
    std::vector<Write> writes = {Accepted(n, at, jobs)};
    for (std::uint32_t i = 0; i < jobs; ++i) {
      writes.emplace_back(Finished(n, at, BareFailure(FailureCode::kInvalidAction), i));
    }
    Put(store, std::move(writes));
  }

  // Runs all steps of a pass. Returns their number.
  static int Run(Store& store, Pruning& pass) {
    int steps = 0;
    while (!pass.is_over()) {
      const Status done = store.Prune(pass, kNow);
      EXPECT_TRUE(done) << done.error().message;
      if (!done) break;
      ++steps;
    }
    return steps;
  }
  static PruningCount Prune(Store& store) {
    Pruning pass(Rule());
    Run(store, pass);
    return pass.count();
  }

  void ExpectWhole() {
    const DatabaseCheck check = CheckDatabase(path()).value();
    EXPECT_TRUE(check.ok()) << check.damage.front().table << " " << check.damage.front().row << ": "
                            << check.damage.front().what;
  }
  std::int64_t RowsOf(std::uint64_t batch) {
    std::int64_t rows = 0;
    for (const char* table : {"requests", "jobs", "outcomes", "known_failures"}) {
      rows += NumberByHand(
          fmt::format("SELECT count(*) FROM {} WHERE batch = {}", table, batch).c_str());
    }
    return rows;
  }
};

TEST_F(PruningTest, OldBatchesGoAndTheirResultsAnswer) {
  const auto store = OpenStore();
  PutMeasured(*store, 1, kOld);
  PutMeasured(*store, 2, kNew);
  PutMeasured(*store, 3, kNew);
  const PruningCount count = Prune(*store);
  EXPECT_EQ(count.batches, 1u);
  EXPECT_EQ(count.requests, 1u);
  EXPECT_EQ(count.jobs, 1u);
  EXPECT_EQ(count.outcomes, 1u);
  EXPECT_EQ(count.damaged, 0u);
  EXPECT_EQ(RowsOf(1), 0);
  EXPECT_EQ(RowsOf(2), 3);
  const auto reader = OpenReader();
  EXPECT_FALSE(reader->FindBatch({1}).value());
  EXPECT_EQ(reader->ReadOutcomes({2}, 0, {.max_rows = 10}).value().size(), 1u);
  for (const std::uint8_t tree : {1, 2}) {
    const StoredAnswer answer = reader->FindResult(KeyFor(SomeMeasurement(tree))).value();
    ASSERT_TRUE(answer) << int{tree};
    EXPECT_EQ(answer->row, tree);
  }
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM results"), 3);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results"), 2);
  EXPECT_EQ(NumberByHand("SELECT measurements FROM v_best"), 1);
  ExpectWhole();

  // A restart finds nothing missing, an answer refers to the result, and numbers go on.
  const auto recovered = store->Recover().value();
  EXPECT_EQ(recovered.next_batch, 4u);
  EXPECT_TRUE(recovered.unfinished.empty());
  JobFinished answered = Finished(4, kNew, SomeMeasurement(1));
  answered.outcome.source = OutcomeSource::kStored;
  Put(*store, {Accepted(4, kNew), answered});
  EXPECT_EQ(NumberByHand("SELECT result FROM outcomes WHERE batch = 4"), 1);
  ExpectWhole();
}

TEST_F(PruningTest, EveryPassIsOnRecord) {
  const auto store = OpenStore();
  PutMeasured(*store, 1, kOld);
  PutMeasured(*store, 2, kNew);
  Prune(*store);
  const auto connection = OpenByHand();
  Query row = connection->Start("SELECT * FROM prunings").value();
  ASSERT_TRUE(row.Next().value());
  EXPECT_EQ(row.Int64(), 1);
  EXPECT_EQ(row.Text(), "a test");
  EXPECT_EQ(row.Int64(), kNow.time_since_epoch().count());
  EXPECT_EQ(row.Int64(), kNow.time_since_epoch().count());
  EXPECT_EQ(row.Int64(), kCutoff.time_since_epoch().count());
  for (const std::int64_t expected : {0, 1, 1, 1, 1, 0}) EXPECT_EQ(row.Int64(), expected);
  EXPECT_TRUE(row.ChecksumMatches());
  EXPECT_FALSE(row.Next().value());
  Pruning again(Rule());
  Run(*store, again);
  EXPECT_EQ(again.id(), 0) << "nothing was removed: no row";
}

TEST_F(PruningTest, WhatIsNotOldAndFinishedStays) {
  const auto store = OpenStore();
  Put(*store, {Accepted(1, kOld, 2), Finished(1, kOld, SomeMeasurement(1))});  // one job to go
  JobsAccepted open = Accepted(2, kOld);
  open.closes_batch = false;
  Put(*store, {open, Finished(2, kOld, SomeMeasurement(2))});
  Put(*store, {Accepted(3, kOld), Finished(3, kNew, SomeMeasurement(3))});  // finished late
  PutMeasured(*store, 4, kOld);  // the newest: the next number follows it
  EXPECT_EQ(Prune(*store).batches, 0u);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM batches"), 4);
  PutMeasured(*store, 5, kNew);
  EXPECT_EQ(Prune(*store).batches, 1u) << "batch 4";
  Put(*store, {BatchCancelled{{1}}, Finished(1, kOld, BareFailure(FailureCode::kCancelled), 1)});
  EXPECT_EQ(Prune(*store).batches, 1u) << "batch 1, cancelled";
  ExpectWhole();
}

TEST_F(PruningTest, AnEmptyBatchGoes) {
  const auto store = OpenStore();
  Put(*store, {Accepted(1, kOld, 0)});
  PutMeasured(*store, 2, kNew);
  EXPECT_EQ(Prune(*store).batches, 1u);
  EXPECT_EQ(RowsOf(1), 0);
}

TEST_F(PruningTest, AKnownFailureGoesWithItsOutcome) {
  const auto store = OpenStore();
  const Evaluation crashed = SomeFailure(FailureCode::kRunCrash);
  Put(*store, {Accepted(1, kOld), Finished(1, kOld, crashed)});
  PutMeasured(*store, 2, kNew);
  const auto reader = SqliteReader::Open(path(), store->result_keys()).value();
  const Witness witness{.worker = "worker-1", .host = crashed.conditions->hardware.host};
  const StoreReader::FailureQuery question{
      .key = KeyFor(crashed), .now = kOld, .candidates = [&] { return std::vector{witness}; }};
  EXPECT_TRUE(reader->FindFailure(question).value());
  EXPECT_EQ(Prune(*store).known_failures, 1u);
  EXPECT_FALSE(reader->FindFailure(question).value());
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM known_failures"), 0);
  // The same failure becomes known again.
  Put(*store, {Accepted(3, kNew), Finished(3, kNew, crashed)});
  EXPECT_TRUE(reader->FindFailure(question).value());
  ExpectWhole();
}

TEST_F(PruningTest, ARequestOfAPrunedBatchIsNew) {
  const auto store = OpenStore();
  const JobsAccepted accepted = Accepted(1, kOld);
  Put(*store, {accepted, Finished(1, kOld, SomeMeasurement(1))});
  PutMeasured(*store, 2, kNew);
  EXPECT_TRUE(OpenReader()->FindRequest(accepted.client, accepted.request_id).value());
  Prune(*store);
  EXPECT_FALSE(OpenReader()->FindRequest(accepted.client, accepted.request_id).value());
}

TEST_F(PruningTest, APrunedBatchIsToldFromOneThatNeverWas) {
  const auto store = OpenStore();
  PutMeasured(*store, 1, kOld);
  PutMeasured(*store, 2, kNew);
  EXPECT_FALSE(OpenReader()->WasPruned({1}).value()) << "it is there";
  Prune(*store);
  EXPECT_TRUE(OpenReader()->WasPruned({1}).value());
  EXPECT_FALSE(OpenReader()->WasPruned({0}).value());
  EXPECT_FALSE(OpenReader()->WasPruned({2}).value());
  EXPECT_FALSE(OpenReader()->WasPruned({3}).value());
  EXPECT_FALSE(OpenReader()->WasPruned({~std::uint64_t{0}}).value());
}

// After a restore, numbers jump. Batches of the numbers between were lost, not pruned, even if the
// last ones before the jump are pruned.
TEST_F(PruningTest, ALostBatchIsNotAPrunedOne) {
  {
    const auto store = OpenStore();
    PutMeasured(*store, 1, kOld);
    PutMeasured(*store, 2, kOld);
  }
  RunByHand(R"sql(
    UPDATE writer SET first_batch = 1000;
    INSERT INTO restores VALUES (100, 2, '{}', zeroblob(16)), (1000, 100, '{}', zeroblob(16)))sql");
  const auto store = OpenStore();
  PutMeasured(*store, 100, kOld);  // of the life between two restores
  PutMeasured(*store, 1'000, kOld);
  PutMeasured(*store, 1'001, kNew);
  Prune(*store);
  for (const std::uint64_t pruned : {1, 2, 100}) {
    EXPECT_TRUE(OpenReader()->WasPruned({pruned}).value()) << pruned;
  }
  for (const std::uint64_t lost : {3, 99, 101, 999}) {
    EXPECT_FALSE(OpenReader()->WasPruned({lost}).value()) << lost;
  }
  EXPECT_TRUE(OpenReader()->WasPruned({1'000}).value());
}

// A program of version 21 may write the file, too, and restored a snapshot with it.
TEST_F(PruningTest, ABatchThatAnEarlierProgramLostIsNotAPrunedOne) {
  {
    const auto store = OpenStore();
    PutMeasured(*store, 1, kOld);
    PutMeasured(*store, 2, kOld);
  }
  RunByHand("UPDATE writer SET first_batch = 1000");
  const auto store = OpenStore();
  PutMeasured(*store, 1'000, kOld);
  PutMeasured(*store, 1'001, kNew);
  Prune(*store);
  EXPECT_TRUE(OpenReader()->WasPruned({2}).value());
  EXPECT_FALSE(OpenReader()->WasPruned({3}).value());
  EXPECT_TRUE(OpenReader()->WasPruned({1'000}).value());
}

TEST_F(PruningTest, DamagedBatchesStay) {
  const auto store = OpenStore();
  for (const std::uint64_t n : {1, 2, 3}) PutMeasured(*store, n, kOld);
  PutMeasured(*store, 4, kNew);
  RunByHand("UPDATE batches SET failed = 1 WHERE id = 1");
  RunByHand("UPDATE outcomes SET finished_at = finished_at + 1 WHERE batch = 2");
  const PruningCount count = Prune(*store);
  EXPECT_EQ(count.damaged, 2u);
  EXPECT_EQ(count.batches, 1u);
  EXPECT_EQ(CheckDatabase(path()).value().damage_count, 2u) << "it is found as it was before";
}

TEST_F(PruningTest, StepsAreShortAndAPassMayEndAnywhere) {
  constexpr std::uint32_t kJobs = 2 * kRowsPerStep + 100;
  {
    const auto store = OpenStore();
    PutFailed(*store, 1, kOld, kJobs);
    PutMeasured(*store, 2, kNew);
    Pruning pass(Rule());
    ASSERT_TRUE(store->Prune(pass, kNow));
    EXPECT_FALSE(pass.is_over());
    EXPECT_EQ(pass.count().outcomes, kRowsPerStep);
    EXPECT_EQ(NumberByHand("SELECT removing FROM prunings"), 1);
    EXPECT_FALSE(OpenReader()->FindBatch({1}).value()) << "no reader sees a part of it";
    EXPECT_TRUE(OpenReader()->WasPruned({1}).value());
    EXPECT_FALSE(OpenReader()->ReadJob({{1}, kJobs - 1}).value());
    ExpectWhole();  // the database says that it is half removed
  }
  const auto store = OpenStore();
  Pruning pass(Rule());
  EXPECT_GE(Run(*store, pass), 4);
  EXPECT_EQ(pass.count().batches, 0u) << "its row went before";
  EXPECT_EQ(pass.count().jobs, kJobs);
  EXPECT_EQ(RowsOf(1), 0);
  EXPECT_EQ(NumberByHand("SELECT sum(outcomes) FROM prunings"), std::int64_t{kJobs});
  EXPECT_EQ(NumberByHand("SELECT removing FROM prunings ORDER BY id DESC LIMIT 1"), 0);
  ExpectWhole();
}

TEST_F(PruningTest, AStepRemovesABoundedNumberOfBytes) {
  const auto store = OpenStore();
  JobSpec large = PlainSpec(3);
  large.tag = '"' + std::string(PruningTable::kBytesPerStep / 2, 'x') + '"';
  JobsAccepted accepted = SomeBatch(1, std::vector<JobSpec>(5, large));
  accepted.accepted_at = kOld;
  std::vector<Write> writes = {accepted};
  for (std::uint32_t i = 0; i < 5; ++i) {
    writes.emplace_back(Finished(1, kOld, BareFailure(FailureCode::kInvalidAction), i));
  }
  Put(*store, std::move(writes));
  PutMeasured(*store, 2, kNew);
  Pruning pass(Rule());
  ASSERT_TRUE(store->Prune(pass, kNow));
  EXPECT_EQ(pass.count().jobs, 2u);
  Run(*store, pass);
  EXPECT_EQ(pass.count().jobs, 5u);
}

TEST_F(PruningTest, BatchesThatAreTooNewEndAPassSoon) {
  const auto store = OpenStore();
  PutMeasured(*store, 1, kOld);
  std::vector<Write> writes;
  for (std::uint64_t n = 2; n < 2 + PruningTable::kTooNewInRow; ++n) {
    writes.emplace_back(Accepted(n, kNew, 0));
  }
  Put(*store, std::move(writes));
  PutMeasured(*store, 50'000, kOld);  // the clock was wrong for a long time
  PutMeasured(*store, 50'001, kNew);
  Pruning pass(Rule());
  EXPECT_LE(Run(*store, pass), 5);
  EXPECT_EQ(pass.count().batches, 1u);
  EXPECT_EQ(RowsOf(50'000), 3);
}

// Once the clock is right again, batches of the time when it was ahead end no pass.
TEST_F(PruningTest, BatchesOfAClockThatWasAheadDoNotEndAPass) {
  const auto store = OpenStore();
  PutMeasured(*store, 1, kOld);
  std::vector<Write> writes;
  for (std::uint64_t n = 2; n <= 2 + PruningTable::kTooNewInRow; ++n) {
    writes.emplace_back(Accepted(n, kNow + std::chrono::days(365), 0));
  }
  Put(*store, std::move(writes));
  PutMeasured(*store, 50'000, kOld);
  PutMeasured(*store, 50'001, kNew);
  EXPECT_EQ(Prune(*store).batches, 2u);
  EXPECT_EQ(RowsOf(50'000), 0);
}

TEST_F(PruningTest, WhatWouldGoIsWhatGoes) {
  const auto store = OpenStore();
  PutFailed(*store, 1, kOld, 7);
  Put(*store, {Accepted(2, kOld), Finished(2, kOld, SomeFailure(FailureCode::kRunCrash))});
  Put(*store, {Accepted(3, kOld, 0)});
  PutMeasured(*store, 4, kNew);
  const PruningCount would = OpenReader()->CountPruning(Rule()).value();
  const PruningCount count = Prune(*store);
  EXPECT_EQ(count.batches, 3u);
  EXPECT_EQ(would.batches, count.batches);
  EXPECT_EQ(would.requests, count.requests);
  EXPECT_EQ(would.jobs, count.jobs);
  EXPECT_EQ(would.outcomes, count.outcomes);
  EXPECT_EQ(would.known_failures, count.known_failures);
}

TEST_F(PruningTest, ANewFileShrinksInSteps) {
  StoreOptions options;
  options.log_pages = 16;
  {
    const auto store = OpenStore(options);
    for (std::uint64_t n = 1; n <= 4; ++n) PutFailed(*store, n, kOld, 4000);
    PutMeasured(*store, 5, kNew);
  }
  const auto whole = std::filesystem::file_size(path());
  {
    const auto store = OpenStore(options);
    Pruning pass(Rule());
    std::int64_t unused = 0;
    while (!pass.is_over()) {
      const std::int64_t before = NumberByHand("PRAGMA freelist_count");
      ASSERT_TRUE(store->Prune(pass, kNow));
      unused = NumberByHand("PRAGMA freelist_count");
      EXPECT_LE(before - unused, PruningTable::kPagesPerStep);
    }
    EXPECT_EQ(unused, 0);
  }
  EXPECT_LT(std::filesystem::file_size(path()), whole / 4);
  ExpectWhole();
  EXPECT_TRUE(OpenReader()->FindResult(KeyFor(SomeMeasurement(5))).value());
}

// A file of an earlier version shrinks when it is compacted, and in steps from then on.
TEST_F(PruningTest, AnOldFileShrinksOnceItWasCompacted) {
  std::filesystem::copy_file(LOOPFLEET_SOURCE_DIR "/tests/golden/storage/1.db", path());
  const auto store = OpenStore();
  EXPECT_EQ(NumberByHand("PRAGMA auto_vacuum"), 0);
  PruningRule rule = Rule();
  rule.finished_before = WallTime(std::chrono::days(30'000));
  Pruning pass(rule);
  Run(*store, pass);
  EXPECT_EQ(pass.count().batches, 1u) << "batches 1 and 3 are not finished";
  EXPECT_EQ(RowsOf(2), 0);
  EXPECT_EQ(OpenReader()->FindBatch({1}).value()->finished, 2u);
  ExpectWhole();
  ASSERT_TRUE(store->Compact());
  EXPECT_EQ(NumberByHand("PRAGMA auto_vacuum"), 2);
  ExpectWhole();
}

TEST_F(PruningTest, AnOvertakenWriterRemovesNothing) {
  const auto old_store = OpenStore();
  PutMeasured(*old_store, 1, kOld);
  PutMeasured(*old_store, 2, kNew);
  std::filesystem::remove(path().string() + ".lock");  // must never be done
  const auto new_store = OpenStore();
  Pruning pass(Rule());
  const Status refused = old_store->Prune(pass, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kClosed);
  EXPECT_EQ(RowsOf(1), 3);
}

// ---- the disk

class PruningDiskTest : public PruningTest {
 protected:
  static constexpr StoreOptions kOptions{.log_pages = 24, .run_entries = 16};
  static constexpr std::uint32_t kJobs = kRowsPerStep + 200;

  // The bytes of a database with two old batches, one of them large, made on a real disk.
  std::string OldBatches() {
    {
      const auto store = OpenStore(kOptions);
      PutFailed(*store, 1, kOld, kJobs);
      PutMeasured(*store, 2, kOld);
      PutMeasured(*store, 3, kNew);
      EXPECT_TRUE(store->Compact());
    }
    std::ifstream file(path(), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    file.close();
    std::filesystem::remove(path());
    return bytes;
  }

  // False: an error.
  bool PruneAll() {
    const auto store = SqliteStore::Open(path(), kOptions);
    if (!store) return false;
    Pruning pass(Rule());
    while (!pass.is_over()) {
      if (!(*store)->Prune(pass, kNow)) return false;
    }
    return true;
  }

  // What is gone is on record, and everything else is there.
  void ExpectOnRecord() {
    ExpectWhole();
    const auto removed = NumberByHand("SELECT coalesce(sum(outcomes), 0) FROM prunings");
    EXPECT_EQ(NumberByHand("SELECT count(*) FROM outcomes") + removed, std::int64_t{kJobs} + 2);
    EXPECT_TRUE(OpenReader()->FindResult(KeyFor(SomeMeasurement(2))).value());
  }
};

TEST_F(PruningDiskTest, ThePowerFailsAtEveryOperation) {
  const std::string whole = OldBatches();
  std::uint64_t operations = 0;
  {
    CrashVfs disk;
    disk.Put(path(), whole);
    EXPECT_TRUE(PruneAll());
    operations = disk.operations();
    ExpectOnRecord();
  }
  ASSERT_GT(operations, 50u);
  std::uint64_t halfway = 0;
  for (std::uint64_t at = 1; at <= operations && !HasFailure(); ++at) {
    SCOPED_TRACE(fmt::format("power failure at operation {} of {}", at, operations));
    CrashVfs disk;
    disk.Put(path(), whole);
    disk.FailAt(at, DiskFault::kDeath);
    PruneAll();
    ASSERT_TRUE(disk.failed());
    disk.Reboot(at);
    ExpectOnRecord();
    const auto left = RowsOf(1);
    halfway += left > 0 && left < 2 * std::int64_t{kJobs} + 1;
    EXPECT_TRUE(PruneAll());  // and goes on
    EXPECT_EQ(RowsOf(1) + RowsOf(2), 0);
    ExpectOnRecord();
  }
  EXPECT_GT(halfway, 0u);
}

}  // namespace
}  // namespace loopfleet::storage
