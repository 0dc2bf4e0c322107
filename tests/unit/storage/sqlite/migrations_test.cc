// Which files open, and how the others are refused.

#include "storage/sqlite/migrations.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include "storage/database_check.h"
#include "storage/thinning.h"
#include "tests/support/paths.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

constexpr int kVersion = 23;

class MigrationsTest : public ScratchDatabase {
 protected:
  void ExpectRefused(ErrorKind kind, std::string_view text) {
    const auto store = SqliteStore::Open(path());
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().kind, kind) << store.error().message;
    EXPECT_NE(store.error().message.find(text), std::string::npos) << store.error().message;
    const auto reader = SqliteReader::Open(path());
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().kind, kind) << reader.error().message;
  }
};

TEST_F(MigrationsTest, ANewFileGetsTheSchema) {
  OpenStore();
  EXPECT_EQ(NumberByHand("PRAGMA user_version"), kVersion);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND "
                         "type = 'table' AND NOT strict AND name NOT LIKE 'sqlite%'"),
            0);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM failure_codes"),
            static_cast<std::int64_t>(FailureTable().size()));
}

// tests/golden/storage/version1.db was written by a real cluster of version 1: two measurements of
// mm64_64_64 and a failure.
TEST_F(MigrationsTest, ADatabaseOfVersion1IsBroughtHereWithAllItsRows) {
  std::filesystem::copy_file(
      std::filesystem::path(LOOPFLEET_SOURCE_DIR) / "tests/golden/storage/version1.db", path());
  {
    const auto refused = SqliteReader::Open(path());
    ASSERT_FALSE(refused);  // only the writer changes it
  }
  const auto store = OpenStore();
  EXPECT_EQ(NumberByHand("PRAGMA user_version"), kVersion);
  const auto reader = OpenReader();
  const auto outcomes = reader->ReadOutcomes({1}, 0, {.max_rows = 10});
  ASSERT_TRUE(outcomes) << outcomes.error().message;
  ASSERT_EQ(outcomes->size(), 2U);
  const Evaluation& evaluation = outcomes->front().evaluation;
  ASSERT_TRUE(evaluation.ok());
  EXPECT_DOUBLE_EQ(evaluation.measurement().elapsed_ns, 2829.2083333333335);
  EXPECT_EQ(evaluation.measurement().clock_before_mhz, 0);  // was not measured then
  EXPECT_EQ(evaluation.conditions->hardware.peaks, DevicePeaks{});
  EXPECT_EQ(evaluation.conditions->policy, "fixed15x60us");
  const auto found = reader->FindResult(KeyFor(evaluation));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(*found);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE status = 'ok'"), 2);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE failure = 'INVALID_ACTION'"), 1);
  // The clock that its host stated is not a reference clock.
  EXPECT_TRUE(store->Recover()->reference_clocks.empty());
}

// tests/golden/storage/version3.db was written by the programs of version 3 while the conversation
// in tests/golden/conversation/2026-11-22-ed7fed4 was recorded: two measurements and a failure.
TEST_F(MigrationsTest, ADatabaseOfVersion3IsBroughtHereWithAllItsRows) {
  std::filesystem::copy_file(
      std::filesystem::path(LOOPFLEET_SOURCE_DIR) / "tests/golden/storage/version3.db", path());
  ASSERT_EQ(NumberByHand("PRAGMA user_version"), 3);
  const auto store = OpenStore();
  EXPECT_EQ(NumberByHand("PRAGMA user_version"), kVersion);
  const auto outcomes = OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 10});
  ASSERT_TRUE(outcomes) << outcomes.error().message;
  ASSERT_EQ(outcomes->size(), 3U);
  std::size_t measured = 0;
  for (const Outcome& outcome : *outcomes) {
    if (!outcome.evaluation.ok()) {
      EXPECT_EQ(outcome.evaluation.failure().code, FailureCode::kInvalidAction);
      continue;
    }
    ++measured;
    const auto found = OpenReader()->FindResult(KeyFor(outcome.evaluation));
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_TRUE(*found);
  }
  EXPECT_EQ(measured, 2U);
}

// tests/golden/storage/version5.db was written by the last programs of version 5: two measurements
// of mm64_64_64 on a busy machine and a failure.
TEST_F(MigrationsTest, ADatabaseOfVersion5IsBroughtHereAndCanBeThinned) {
  std::filesystem::copy_file(
      std::filesystem::path(LOOPFLEET_SOURCE_DIR) / "tests/golden/storage/version5.db", path());
  ASSERT_EQ(NumberByHand("PRAGMA user_version"), 5);
  const auto store = OpenStore();
  EXPECT_EQ(NumberByHand("PRAGMA user_version"), kVersion);
  const auto before = OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 10}).value();
  ASSERT_EQ(before.size(), 3U);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE sample_count = 15 AND "
                         "samples_kept = 15 AND thinned_at IS NULL"),
            2);
  const WallTime late{std::chrono::days(30'000)};
  Thinning pass({.measured_before = late, .keep_every = 0}, Thinning::Scope::kAll);
  while (!pass.is_over()) ASSERT_TRUE(store->Thin(pass, late));
  EXPECT_EQ(pass.count().results, 2U);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE sample_count = 15 AND "
                         "samples_kept = 0 AND thinned_at IS NOT NULL"),
            2);
  const auto after = OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 10}).value();
  for (std::size_t i = 0; i < before.size(); ++i) {
    Outcome expected = before[i];
    if (auto* measurement = std::get_if<Measurement>(&expected.evaluation.verdict)) {
      measurement->thinned =
          Thinned{.samples_before = 15,
                  .accepted_before = static_cast<std::uint32_t>(AcceptedSamples(*measurement))};
      measurement->samples_ns.clear();
      measurement->sample_flags.clear();
    }
    EXPECT_EQ(after[i], expected);
  }
}

// As a later version leaves it: with a table, an index and a view that this one does not know.
class NewerDatabaseTest : public MigrationsTest {
 protected:
  void Upgrade(int oldest_program) {
    RunByHand(
        fmt::format("CREATE TABLE later (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;"
                    "CREATE INDEX later_outcomes ON outcomes (finished_at);"
                    "CREATE VIEW v_later AS SELECT * FROM later;"
                    "UPDATE writer SET oldest_program = {0}, schema_version = {1};"
                    "PRAGMA user_version = {1}",
                    oldest_program, kVersion + 1));
  }
  void SetUp() override {
    const auto store = OpenStore();
    ASSERT_TRUE(store->Apply(
        std::vector<Write>{SomeBatch(1, {PlainSpec(3)}),
                           JobFinished{SomeOutcome({}, PlainSpec(3), SomeMeasurement(1))},
                           SomeBatch(2, {PlainSpec(3)})}));
  }
};

TEST_F(NewerDatabaseTest, ThatAllowsItIsWrittenOn) {
  Upgrade(kVersion);
  const auto store = OpenStore();
  EXPECT_EQ(NumberByHand("PRAGMA user_version"), kVersion + 1) << "it stays what it is";
  EXPECT_EQ(store->Recover()->jobs.size(), 1u);
  ASSERT_TRUE(store->Apply(std::vector<Write>{
      JobFinished{SomeOutcome({.batch = 2}, PlainSpec(3), SomeMeasurement(2))}}));
  const auto reader = OpenReader();
  for (const std::uint8_t tree : {1, 2}) {
    EXPECT_TRUE(reader->FindResult(KeyFor(SomeMeasurement(tree))).value());
  }
  EXPECT_EQ(reader->ReadOutcomes({2}, 0, {.max_rows = 10})->size(), 1u);
  Thinning pass({.measured_before = WallTime(std::chrono::days(30'000))}, Thinning::Scope::kAll);
  while (!pass.is_over()) ASSERT_TRUE(store->Thin(pass, WallTime(std::chrono::days(30'000))));
  EXPECT_EQ(pass.count().results, 2u);
  EXPECT_TRUE(CheckDatabase(path())->ok());
}

TEST_F(NewerDatabaseTest, ThatForbidsItIsRefused) {
  Upgrade(kVersion + 1);
  ExpectRefused(ErrorKind::kInvalid,
                fmt::format("has schema version {0}, which programs of version {0} and later can "
                            "use; this program works with {1}: use the newer",
                            kVersion + 1, kVersion));
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM outcomes"), 1);
}

TEST_F(NewerDatabaseTest, WhoseHeaderAloneSaysSoIsDamaged) {
  RunByHand(
      fmt::format("UPDATE writer SET oldest_program = {0}, schema_version = {0};"
                  "PRAGMA user_version = {1}",
                  kVersion, kVersion + 16));
  ExpectRefused(ErrorKind::kCorrupt, fmt::format("its header has schema version {}, its table "
                                                 "writer {}",
                                                 kVersion + 16, kVersion));
}

// Every table with its columns in order.
std::map<std::string, std::string> Columns(Connection& connection) {
  std::map<std::string, std::string> columns;
  Query row = connection
                  .StartOnce(
                      "SELECT t.name, c.name FROM pragma_table_list t "
                      "JOIN pragma_table_info(t.name) c WHERE t.schema = 'main' AND "
                      "t.type = 'table' AND t.name NOT LIKE 'sqlite%' ORDER BY t.name, c.cid")
                  .value();
  while (row.Next().value()) {
    std::string& table = columns[std::string(row.Text())];
    table += std::string(row.Text()) + ' ';
  }
  return columns;
}

// The rule in migrations.h, as far as a test can know it.
TEST_F(MigrationsTest, AMigrationThatChangesATableSaysWhichProgramsCanFollow) {
  const auto folder = std::filesystem::path(LOOPFLEET_SOURCE_DIR) / "storage/sqlite/migrations";
  std::vector<std::filesystem::path> files{std::filesystem::directory_iterator(folder), {}};
  std::ranges::sort(files);
  const auto connection = OpenByHand();
  int changed = 0;
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename().string());
    const int number = std::stoi(file.filename().string());
    const auto before = Columns(*connection);
    std::ifstream text(file);
    const std::string sql{std::istreambuf_iterator<char>(text), {}};
    ASSERT_TRUE(connection->RunOnSchema(sql.c_str()));
    if (number < 11) continue;  // programs of that time look at nothing but the version
    EXPECT_EQ(connection->Number("SELECT schema_version FROM writer").value(), number);
    const auto after = Columns(*connection);
    const bool is_changed = std::ranges::any_of(before, [&](const auto& table) {
      return !after.contains(table.first) || after.at(table.first) != table.second;
    });
    changed += is_changed;
    if (is_changed) {
      EXPECT_EQ(connection->Number("SELECT oldest_program FROM writer").value(), number);
    }
  }
  EXPECT_GT(changed, 0) << "version 11 changes `writer`";
}

// A file that has results of others already.
TEST_F(MigrationsTest, Version22KnowsEarlierResultsOfOthers) {
  const auto folder = std::filesystem::path(LOOPFLEET_SOURCE_DIR) / "storage/sqlite/migrations";
  std::vector<std::filesystem::path> files{std::filesystem::directory_iterator(folder), {}};
  std::ranges::sort(files);
  const auto connection = OpenByHand();
  for (const auto& file : files) {
    if (std::stoi(file.filename().string()) == 22) {
      ASSERT_TRUE(
          connection->Run("INSERT INTO foreign_results VALUES (1, zeroblob(16), 1, 0, 0, 0)"));
    }
    std::ifstream text(file);
    const std::string sql{std::istreambuf_iterator<char>(text), {}};
    ASSERT_TRUE(connection->RunOnSchema(sql.c_str())) << file;
  }
  EXPECT_EQ(connection->Number("SELECT oldest_program FROM writer").value(), 19);
}

// tests/golden/storage/1.db was written by the last program whose schema had version 1, with the
// samples that record_samples.h had then.
class OldDatabaseTest : public MigrationsTest {
 protected:
  // As version 1 stored it: without clocks and peaks.
  static Evaluation Old(Evaluation evaluation) {
    evaluation.conditions->hardware.peaks = {};
    if (evaluation.ok()) {
      auto& measurement = std::get<Measurement>(evaluation.verdict);
      measurement.clock_before_mhz = 0;
      measurement.clock_after_mhz = 0;
    }
    return evaluation;
  }

  void SetUp() override {
    std::filesystem::copy_file(LOOPFLEET_SOURCE_DIR "/tests/golden/storage/1.db", path());
  }
};

TEST_F(OldDatabaseTest, OpensWithItsRowsIntact) {
  const auto store = OpenStore();
  EXPECT_EQ(NumberByHand("PRAGMA user_version"), kVersion);
  const auto reader = OpenReader();
  const std::vector<Outcome> first = {
      SomeOutcome({.index = 0, .sequence = 1}, PlainSpec(2), Old(SomeMeasurement(1))),
      SomeOutcome({.index = 1, .sequence = 2}, FullSpec(),
                  Old(SomeFailure(FailureCode::kRunCrash)))};
  EXPECT_EQ(reader->ReadOutcomes({1}, 0, {.max_rows = 10}).value(), first);
  Evaluation later = Old(SomeMeasurement(1));
  std::get<Measurement>(later.verdict).elapsed_ns = 77;
  const std::vector<Outcome> second = {
      SomeOutcome({.batch = 2, .index = 1, .sequence = 1, .source = OutcomeSource::kStored},
                  PlainSpec(2), Old(SomeMeasurement(1))),
      SomeOutcome({.batch = 2, .index = 0, .sequence = 2, .source = OutcomeSource::kCoalesced},
                  PlainSpec(2), BareFailure(FailureCode::kExpired)),
      SomeOutcome({.batch = 2, .index = 2, .sequence = 3}, PlainSpec(3), later)};
  EXPECT_EQ(reader->ReadOutcomes({2}, 0, {.max_rows = 10}).value(), second);
  // Its results answer, the newest first, although version 1's index is gone.
  EXPECT_EQ(reader->FindResult(KeyFor(later)).value()->evaluation.measurement().elapsed_ns, 77);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results"), 5);

  const Recovery recovery = store->Recover().value();
  ASSERT_EQ(recovery.jobs.size(), 3u);
  EXPECT_EQ(recovery.jobs[0].spec, PlainSpec(4));
  EXPECT_FALSE(recovery.jobs[0].replayed);  // version 1 did not store it
  EXPECT_EQ(recovery.jobs[2].job, (JobId{{3}, 0}));
}

TEST_F(OldDatabaseTest, IsWrittenOn) {
  const auto store = OpenStore();
  Evaluation same = Old(SomeMeasurement(1));
  ASSERT_TRUE(store->Apply(std::vector<Write>{
      JobFinished{SomeOutcome({.batch = 3, .source = OutcomeSource::kStored}, PlainSpec(6), same)},
      SomeBatch(4, {PlainSpec(7)}),
      JobFinished{SomeOutcome({.batch = 4}, PlainSpec(7), SomeMeasurement(9))}}));
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM results"), 3);  // two old ones and a new one
  EXPECT_TRUE(OpenReader()->FindResult(KeyFor(SomeMeasurement(9))).value());
}

TEST_F(OldDatabaseTest, IsNotReadBeforeItWasUpgraded) {
  const auto reader = SqliteReader::Open(path());
  ASSERT_FALSE(reader);
  EXPECT_NE(reader.error().message.find("start a coordinator of this version"), std::string::npos);
}

TEST_F(MigrationsTest, AVersionThatNeverWasIsRefusedByReaders) {
  OpenStore();
  RunByHand("PRAGMA user_version = 0");
  const auto reader = SqliteReader::Open(path());
  ASSERT_FALSE(reader);
  EXPECT_NE(reader.error().message.find("start a coordinator of this version"), std::string::npos)
      << reader.error().message;
}

TEST_F(MigrationsTest, AnotherProgramsDatabaseIsLeftAlone) {
  RunByHand("CREATE TABLE theirs (x)");
  ExpectRefused(ErrorKind::kInvalid, "was not made by loopfleet");
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM sqlite_schema"), 1);
}

TEST_F(MigrationsTest, AFileThatIsNoDatabaseIsLeftAlone) {
  std::ofstream(path()) << "This is a letter, and has been one for more than sixteen bytes.\n";
  ExpectRefused(ErrorKind::kCorrupt, "not a database");
}

TEST_F(MigrationsTest, ADirectoryThatIsMissingIsNamed) {
  const auto store = SqliteStore::Open(directory() / "no" / "x.db");
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message.find("/no/x.db"), std::string::npos) << store.error().message;
}

}  // namespace
}  // namespace loopfleet::storage
