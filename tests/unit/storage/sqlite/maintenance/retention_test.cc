// Raw samples of old results are removed: always on record, never by half, and nothing else.

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "storage/database_check.h"
#include "storage/sqlite/maintenance/retention_table.h"
#include "tests/support/crash_vfs.h"
#include "tests/support/paths.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

using Scope = Thinning::Scope;

constexpr WallTime kOld{std::chrono::days(1000)};
constexpr WallTime kCutoff{std::chrono::days(1001)};
constexpr WallTime kNew{std::chrono::days(1002)};
constexpr WallTime kNow{std::chrono::days(2000)};

ThinningRule Rule(std::uint32_t keep_every) {
  return {.measured_before = kCutoff, .keep_every = keep_every, .asked_by = "a test"};
}

// Batch n with one result, measured at `measured_at`.
std::vector<Write> BatchOf(std::uint64_t n, WallTime measured_at) {
  JobFinished finished{
      SomeOutcome({.batch = n}, PlainSpec(3), SomeMeasurement(static_cast<std::uint8_t>(n % 250)))};
  finished.outcome.finished_at = measured_at;
  return {SomeBatch(n, {PlainSpec(3)}), std::move(finished)};
}

class RetentionTest : public ScratchDatabase {
 protected:
  static void Put(Store& store, std::uint64_t n, WallTime measured_at) {
    const Status applied = store.Apply(BatchOf(n, measured_at));
    ASSERT_TRUE(applied) << applied.error().message;
  }
  static void PutMany(Store& store, std::uint64_t from, std::uint64_t count, WallTime measured_at) {
    std::vector<Write> writes;
    for (std::uint64_t n = from; n < from + count; ++n) {
      for (Write& write : BatchOf(n, measured_at)) writes.push_back(std::move(write));
    }
    ASSERT_TRUE(store.Apply(writes));
  }

  // Runs all steps of a pass. Returns their number.
  static int Run(Store& store, Thinning& pass) {
    int steps = 0;
    while (!pass.is_over()) {
      const Status done = store.Thin(pass, kNow);
      EXPECT_TRUE(done) << done.error().message;
      if (!done) break;
      ++steps;
    }
    return steps;
  }

  Measurement Read(std::uint64_t batch) {
    const auto outcomes = OpenReader()->ReadOutcomes({batch}, 0, {.max_rows = 10}).value();
    EXPECT_EQ(outcomes.size(), 1u);
    EXPECT_TRUE(outcomes[0].evaluation.ok());
    return outcomes[0].evaluation.measurement();
  }

  void ExpectWhole() {
    const DatabaseCheck check = CheckDatabase(path()).value();
    EXPECT_TRUE(check.ok()) << check.damage.front().table << " " << check.damage.front().row << ": "
                            << check.damage.front().what;
  }
};

TEST_F(RetentionTest, SamplesOfOldResultsGoAndEverythingElseStays) {
  const auto store = OpenStore();
  Put(*store, 1, kOld);
  Put(*store, 2, kNew);
  Outcome expected = OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 10}).value().at(0);
  const Outcome young = OpenReader()->ReadOutcomes({2}, 0, {.max_rows = 10}).value().at(0);
  Thinning pass(Rule(0), Scope::kAll);
  Run(*store, pass);
  EXPECT_EQ(pass.count().results, 1u);
  EXPECT_EQ(pass.count().samples, 4u);
  EXPECT_EQ(pass.count().bytes, 36u);
  EXPECT_EQ(pass.count().damaged, 0u);

  auto& measurement = std::get<Measurement>(expected.evaluation.verdict);
  const std::size_t accepted = AcceptedSamples(measurement);
  measurement.samples_ns.clear();
  measurement.sample_flags.clear();
  measurement.thinned = Thinned{.samples_before = 4, .accepted_before = 3};
  EXPECT_EQ(OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 10}).value().at(0), expected);
  EXPECT_EQ(SampleCount(Read(1)), 4u);
  EXPECT_EQ(AcceptedSamples(Read(1)), accepted);
  EXPECT_EQ(OpenReader()->ReadOutcomes({2}, 0, {.max_rows = 10}).value().at(0), young);
  ExpectWhole();

  // It answers as before, and reports that it was thinned.
  const StoredAnswer answer = OpenReader()->FindResult(KeyFor(expected.evaluation)).value();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->evaluation.measurement(), measurement);
  EXPECT_EQ(answer->row, 1);
}

TEST_F(RetentionTest, EveryPassIsOnRecord) {
  const auto store = OpenStore();
  Put(*store, 1, kOld);
  Put(*store, 2, kOld);
  Put(*store, 3, kNew);
  Thinning pass(Rule(2), Scope::kAll);
  Run(*store, pass);
  EXPECT_EQ(pass.id(), 1);
  const auto connection = OpenByHand();
  {
    Query row = connection->Start("SELECT * FROM retention").value();
    ASSERT_TRUE(row.Next().value());
    EXPECT_EQ(row.Int64(), 1);
    EXPECT_EQ(row.Text(), "a test");
    EXPECT_EQ(row.Int64(), kNow.time_since_epoch().count());
    EXPECT_EQ(row.Int64(), kNow.time_since_epoch().count());
    EXPECT_EQ(row.Int64(), kCutoff.time_since_epoch().count());
    EXPECT_EQ(row.Int64(), 2);   // keep_every
    EXPECT_EQ(row.Int64(), 2);   // through
    EXPECT_EQ(row.Int64(), 2);   // results
    EXPECT_EQ(row.Int64(), 4);   // samples
    EXPECT_EQ(row.Int64(), 36);  // bytes
    EXPECT_TRUE(row.ChecksumMatches());
    EXPECT_FALSE(row.Next().value());
  }
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE sample_count = 4 AND "
                         "samples_kept = 2 AND thinned_at = '1975-06-24T00:00:00.000Z'"),
            2);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE sample_count = 4 AND "
                         "samples_kept = 4 AND thinned_at IS NULL"),
            1);
  // A pass that finds nothing to do writes no row.
  Thinning again(Rule(2), Scope::kAll);
  Run(*store, again);
  EXPECT_EQ(again.count().results, 0u);
  EXPECT_EQ(again.id(), 0);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM retention"), 1);
}

TEST_F(RetentionTest, OneOfEachSoManyIsLeft) {
  const auto store = OpenStore();
  JobsAccepted accepted = SomeBatch(1, {PlainSpec(3)});
  Evaluation evaluation = SomeMeasurement(1);
  auto& taken = std::get<Measurement>(evaluation.verdict);
  taken.samples_ns.clear();
  taken.sample_flags.clear();
  for (int i = 0; i < 15; ++i) {
    taken.samples_ns.push_back(100.0 + i);
    taken.sample_flags.push_back(i < 5 ? kSampleAccepted : kSampleContended);
  }
  JobFinished finished{SomeOutcome({}, PlainSpec(3), evaluation)};
  finished.outcome.finished_at = kOld;
  ASSERT_TRUE(store->Apply(std::vector<Write>{accepted, finished}));
  const auto thin = [&](std::uint32_t keep_every) {
    Thinning pass(Rule(keep_every), Scope::kAll);
    Run(*store, pass);
    ExpectWhole();
    const Measurement measurement = Read(1);
    EXPECT_EQ(measurement.samples_ns.size(), measurement.sample_flags.size());
    EXPECT_EQ(SampleCount(measurement), 15u);
    EXPECT_EQ(AcceptedSamples(measurement), 5u);
    EXPECT_TRUE(measurement.thinned);
    return measurement.samples_ns;
  };
  EXPECT_EQ(thin(4), (std::vector<double>{100, 104, 108, 112}));
  EXPECT_EQ(Read(1).sample_flags, (std::vector<std::uint8_t>{0, 0, 1, 1}));
  EXPECT_EQ(thin(4).size(), 4u) << "once is enough";
  EXPECT_EQ(thin(2).size(), 4u) << "a milder rule gives nothing back";
  EXPECT_EQ(thin(8), (std::vector<double>{100, 108}));
  EXPECT_EQ(thin(0), std::vector<double>{});
  EXPECT_EQ(NumberByHand("SELECT thinned_by FROM results"), 3);
}

TEST_F(RetentionTest, StepsAreShortAndAPassMayEndAnywhere) {
  constexpr std::uint64_t kResults = 3 * RetentionTable::kRowsPerStep / 2;
  {
    const auto store = OpenStore();
    PutMany(*store, 1, kResults, kOld);
    Thinning pass(Rule(0), Scope::kNew);
    ASSERT_TRUE(store->Thin(pass, kNow));
    EXPECT_FALSE(pass.is_over());
    EXPECT_EQ(pass.count().results, RetentionTable::kRowsPerStep);
    // A step is on record even if the pass never ends.
    EXPECT_EQ(NumberByHand("SELECT results FROM retention WHERE id = 1"),
              std::int64_t{RetentionTable::kRowsPerStep});
    ExpectWhole();
  }
  const auto store = OpenStore();
  Thinning pass(Rule(0), Scope::kNew);
  EXPECT_EQ(Run(*store, pass), 1);
  EXPECT_EQ(pass.count().results, kResults - RetentionTable::kRowsPerStep) << "the rest alone";
  EXPECT_EQ(NumberByHand("SELECT sum(results) FROM retention"),
            static_cast<std::int64_t>(kResults));
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM results WHERE length(sample_flags) > 0"), 0);
  ExpectWhole();
}

TEST_F(RetentionTest, APassThatIsMadeAgainGoesOnWhereItEnded) {
  const auto store = OpenStore();
  Put(*store, 1, kOld);
  Put(*store, 2, kNew);
  Put(*store, 3, kOld);  // the clock was set back
  Put(*store, 4, kNew);
  const auto thin = [&](WallTime before) {
    ThinningRule rule = Rule(0);
    rule.measured_before = before;
    Thinning pass(rule, Scope::kNew);
    Run(*store, pass);
    return pass.count().results;
  };
  EXPECT_EQ(thin(kCutoff), 2u);
  EXPECT_EQ(NumberByHand("SELECT through FROM retention"), 3);
  EXPECT_EQ(thin(kCutoff), 0u);
  EXPECT_EQ(thin(kNow), 1u) << "result 4; result 2 is behind it, for `db thin` to find";
  Thinning all(Rule(0), Scope::kAll);
  Run(*store, all);
  EXPECT_EQ(all.count().results, 0u) << "too new for this rule";
  // A stricter rule does not skip what a milder one has covered.
  Put(*store, 5, kNew);
  ThinningRule mild = Rule(2);
  mild.measured_before = kNow;
  Thinning mild_pass(mild, Scope::kNew);
  Run(*store, mild_pass);
  EXPECT_EQ(mild_pass.count().results, 1u);
  EXPECT_EQ(thin(kNow), 1u);
}

TEST_F(RetentionTest, ResultsThatAreTooNewEndAPassSoon) {
  const auto store = OpenStore();
  Put(*store, 1, kOld);
  PutMany(*store, 2, RetentionTable::kTooNewInRow + 2 * RetentionTable::kRowsPerStep, kNew);
  Put(*store, 100'000, kOld);
  Thinning pass(Rule(0), Scope::kNew);
  Run(*store, pass);
  EXPECT_EQ(pass.count().results, 1u);
  Thinning all(Rule(0), Scope::kAll);
  Run(*store, all);
  EXPECT_EQ(all.count().results, 1u) << "every result is looked at";
}

// Once the clock is right again, results of the time when it was ahead end no pass.
TEST_F(RetentionTest, ResultsOfAClockThatWasAheadDoNotEndAPass) {
  const auto store = OpenStore();
  Put(*store, 1, kOld);
  PutMany(*store, 2, RetentionTable::kTooNewInRow + 1, kNow + std::chrono::days(365));
  Put(*store, 100'000, kOld);
  Put(*store, 100'001, kNew);
  Thinning pass(Rule(0), Scope::kNew);
  Run(*store, pass);
  EXPECT_EQ(pass.count().results, 2u);
}

TEST_F(RetentionTest, ADamagedResultIsLeftAsItIs) {
  const auto store = OpenStore();
  for (std::uint64_t n = 1; n <= 3; ++n) Put(*store, n, kOld);
  RunByHand("UPDATE results SET elapsed_ns = elapsed_ns * 2 WHERE id = 2");
  Thinning pass(Rule(0), Scope::kAll);
  Run(*store, pass);
  EXPECT_EQ(pass.count().results, 2u);
  EXPECT_EQ(pass.count().damaged, 1u);
  EXPECT_EQ(NumberByHand("SELECT length(sample_flags) FROM results WHERE id = 2"), 4);
  const DatabaseCheck check = CheckDatabase(path()).value();
  ASSERT_EQ(check.damage_count, 1u) << "it is found as it was before";
  EXPECT_EQ(check.damage[0].row, "2");
}

// An answer with a thinned result refers to the result's row and adds none.
TEST_F(RetentionTest, AThinnedResultIsKnownAgain) {
  const auto store = OpenStore();
  Put(*store, 1, kOld);
  Thinning pass(Rule(0), Scope::kAll);
  Run(*store, pass);
  const Evaluation thinned =
      OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 10}).value().at(0).evaluation;
  const JobFinished answered{
      SomeOutcome({.batch = 2, .source = OutcomeSource::kStored}, PlainSpec(3), thinned)};
  ASSERT_TRUE(store->Apply(std::vector<Write>{SomeBatch(2, {PlainSpec(3)}), answered}));
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM results"), 1);
  EXPECT_EQ(NumberByHand("SELECT result FROM outcomes WHERE batch = 2"), 1);
}

TEST_F(RetentionTest, WhatWouldBeTakenIsWhatIsTaken) {
  const auto store = OpenStore();
  PutMany(*store, 1, 40, kOld);
  PutMany(*store, 41, 10, kNew);
  for (const std::uint32_t keep_every : {3, 2, 0}) {
    const ThinningCount would = OpenReader()->CountThinning(Rule(keep_every)).value();
    Thinning pass(Rule(keep_every), Scope::kAll);
    Run(*store, pass);
    EXPECT_EQ(would.results, pass.count().results) << keep_every;
    EXPECT_EQ(would.samples, pass.count().samples) << keep_every;
    EXPECT_EQ(would.bytes, pass.count().bytes) << keep_every;
  }
}

TEST_F(RetentionTest, CompactingGivesTheRoomBack) {
  const auto store = OpenStore();
  PutMany(*store, 1, 2000, kOld);
  ASSERT_TRUE(store->Compact());
  const auto whole = std::filesystem::file_size(path());
  Thinning pass(Rule(0), Scope::kAll);
  Run(*store, pass);
  const auto thinned = OpenReader()->ReadOutcomes({7}, 0, {.max_rows = 10}).value();
  ASSERT_TRUE(store->Compact());
  EXPECT_LT(std::filesystem::file_size(path()) + pass.count().bytes / 2, whole);
  EXPECT_EQ(OpenReader()->ReadOutcomes({7}, 0, {.max_rows = 10}).value(), thinned);
  ExpectWhole();
  Put(*store, 5000, kNew);  // it goes on
  ExpectWhole();
}

TEST_F(RetentionTest, AnOvertakenWriterTakesNothing) {
  const auto old_store = OpenStore();
  Put(*old_store, 1, kOld);
  std::filesystem::remove(path().string() + ".lock");  // must never be done
  const auto new_store = OpenStore();
  Thinning pass(Rule(0), Scope::kAll);
  const Status refused = old_store->Thin(pass, kNow);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kClosed);
  EXPECT_EQ(old_store->Compact().error().kind, ErrorKind::kClosed);
  EXPECT_FALSE(Read(1).thinned);
}

// Results of version 1 have neither clocks nor a second checksum, and get none by thinning.
TEST_F(RetentionTest, ResultsOfVersion1) {
  std::filesystem::copy_file(LOOPFLEET_SOURCE_DIR "/tests/golden/storage/1.db", path());
  const auto store = OpenStore();
  const auto before = OpenReader()->ReadOutcomes({2}, 0, {.max_rows = 10}).value();
  ThinningRule rule = Rule(3);
  rule.measured_before = WallTime(std::chrono::days(30'000));
  Thinning pass(rule, Scope::kAll);
  Run(*store, pass);
  EXPECT_EQ(pass.count().results, 2u);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM results WHERE checksum_2 IS NULL AND "
                         "clock_before_mhz IS NULL AND checksum_6 IS NOT NULL"),
            2);
  ExpectWhole();
  const auto after = OpenReader()->ReadOutcomes({2}, 0, {.max_rows = 10}).value();
  ASSERT_EQ(after.size(), before.size());
  EXPECT_EQ(after[2].evaluation.measurement().elapsed_ns,
            before[2].evaluation.measurement().elapsed_ns);
  EXPECT_EQ(after[2].evaluation.measurement().samples_ns.size(), 2u);
}

// ---- the disk

class RetentionDiskTest : public RetentionTest {
 protected:
  static constexpr StoreOptions kOptions{.log_pages = 24, .run_entries = 16};
  static constexpr std::uint64_t kResults = RetentionTable::kRowsPerStep + 100;

  // The bytes of a database with kResults old results, made on a real disk.
  std::string OldResults() {
    {
      const auto store = OpenStore(kOptions);
      PutMany(*store, 1, kResults, kOld);
      EXPECT_TRUE(store->Compact());
    }
    std::ifstream file(path(), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    file.close();
    std::filesystem::remove(path());
    return bytes;
  }

  // False: an error.
  bool ThinAll() {
    const auto store = SqliteStore::Open(path(), kOptions);
    if (!store) return false;
    Thinning pass(Rule(0), Scope::kNew);
    while (!pass.is_over()) {
      if (!(*store)->Thin(pass, kNow)) return false;
    }
    return true;
  }

  // Every result is whole, or thinned and on record.
  void ExpectOnRecord() {
    EXPECT_EQ(NumberByHand("SELECT count(*) FROM results"), static_cast<std::int64_t>(kResults));
    EXPECT_EQ(NumberByHand("SELECT count(*) FROM results WHERE "
                           "(thinned_by IS NULL) <> (length(sample_flags) = 4)"),
              0);
    EXPECT_EQ(NumberByHand("SELECT count(*) FROM results WHERE thinned_by IS NOT NULL"),
              NumberByHand("SELECT coalesce(sum(results), 0) FROM retention"));
    ExpectWhole();
  }
};

TEST_F(RetentionDiskTest, ThePowerFailsAtEveryOperation) {
  const std::string whole = OldResults();
  std::uint64_t operations = 0;
  {
    CrashVfs disk;
    disk.Put(path(), whole);
    EXPECT_TRUE(ThinAll());
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
    ThinAll();
    ASSERT_TRUE(disk.failed());
    disk.Reboot(at);
    ExpectOnRecord();
    const auto thinned = NumberByHand("SELECT count(*) FROM results WHERE thinned_by IS NOT NULL");
    halfway += thinned > 0 && thinned < static_cast<std::int64_t>(kResults);
    EXPECT_TRUE(ThinAll());  // and goes on
    EXPECT_EQ(NumberByHand("SELECT sum(results) FROM retention"),
              static_cast<std::int64_t>(kResults));
    ExpectOnRecord();
  }
  EXPECT_GT(halfway, 0u);
}

TEST_F(RetentionDiskTest, ADiskThatFillsAtEveryOperation) {
  const std::string whole = OldResults();
  for (std::uint64_t at = 1;; ++at) {
    SCOPED_TRACE(fmt::format("full at operation {}", at));
    CrashVfs disk;
    disk.Put(path(), whole);
    const auto store = SqliteStore::Open(path(), kOptions).value();
    disk.FailAt(disk.operations() + at, DiskFault::kFull, CrashVfs::Lasting::kUntilMended);
    Thinning pass(Rule(0), Scope::kNew);
    bool was_full = false;
    while (!pass.is_over()) {
      const Status done = store->Thin(pass, kNow);
      if (done) continue;
      ASSERT_FALSE(was_full) << done.error().message;
      was_full = true;
      EXPECT_TRUE(done.error().kind == ErrorKind::kFull || done.error().kind == ErrorKind::kSystem)
          << done.error().message;
      disk.Mend();  // the same pass goes on
    }
    EXPECT_EQ(pass.count().results, kResults);
    ExpectOnRecord();
    if (!disk.failed() || HasFailure()) break;
  }
}

}  // namespace
}  // namespace loopfleet::storage
