// Every changed row is detected, whichever bit changed; the others are served.

#include "storage/database_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "common/base/random.h"
#include "storage/pruning.h"
#include "storage/sqlite/tables/foreign_table.h"
#include "storage/sqlite/tables/suspicion_table.h"
#include "storage/thinning.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

constexpr std::uint64_t kBatches = 40;
constexpr int kFlips = 600;

class DatabaseCheckTest : public ScratchDatabase {
 protected:
  // The first result of such a batch is old, and has half of its samples.
  static bool IsThinned(std::uint64_t batch) { return batch % 3 == 0; }

  static Evaluation StoredMeasurement(std::uint64_t batch, std::uint32_t index) {
    const auto n = static_cast<std::uint8_t>(batch + (index == 2 ? 100 : 0));
    Evaluation evaluation = SomeMeasurement(n);
    auto& measurement = std::get<Measurement>(evaluation.verdict);
    if (batch == 1 && index == 2) {  // from a GPU, with a state
      evaluation.conditions->hardware.device = DeviceKind::kCuda;
      measurement.device = DeviceState{.temperature_c = 61};
    }
    if (!IsThinned(batch) || index == 2) return evaluation;
    measurement.samples_ns = {measurement.samples_ns[0], measurement.samples_ns[2]};
    measurement.sample_flags = {measurement.sample_flags[0], measurement.sample_flags[2]};
    measurement.thinned = Thinned{.samples_before = 4, .accepted_before = 3};
    return evaluation;
  }

  static Evaluation Observing(std::uint8_t n) {
    return {.verdict = Observed{.values = {{"clock_mhz", 3700.0 + n}}},
            .subject = SomeKey(n),
            .conditions = SomeConditions()};
  }

  void SetUp() override {
    const auto store = OpenStore({.run_entries = 16});
    for (std::uint64_t id = 1; id <= kBatches; ++id) {
      const auto n = static_cast<std::uint8_t>(id);
      JobsAccepted accepted = SomeBatch(id, {PlainSpec(2), FullSpec(), PlainSpec(4), PlainSpec(5)});
      accepted.replayed.assign(4, ReplayResult{.subject = SomeKey(n)});
      JobFinished first{
          SomeOutcome({.batch = id, .index = 0, .sequence = 1}, PlainSpec(2), SomeMeasurement(n))};
      first.program = ContentKey::Of("a program");
      if (IsThinned(id)) first.outcome.finished_at = WallTime(std::chrono::days(1));
      const Status applied = store->Apply(std::vector<Write>{
          accepted, first,
          JobFinished{.outcome = SomeOutcome({.batch = id, .index = 1, .sequence = 2}, FullSpec(),
                                             SomeFailure(FailureCode::kRunCrash)),
                      .agreeing = {{.worker = "worker-2", .host = "host-2"}}},
          JobFinished{SomeOutcome({.batch = id, .index = 2, .sequence = 3}, PlainSpec(4),
                                  StoredMeasurement(id, 2))},
          JobFinished{
              SomeOutcome({.batch = id, .index = 3, .sequence = 4}, PlainSpec(5), Observing(n))}});
      ASSERT_TRUE(applied) << applied.error().message;
    }
    const Outcome any = SomeOutcome({}, PlainSpec(2), SomeMeasurement(1));
    ASSERT_TRUE(store->Apply(std::vector<Write>{ResultsSuspected{.worker = any.worker,
                                                                 .since = any.finished_at,
                                                                 .flagged_at = any.finished_at,
                                                                 .reason = "it drifted"}}));
    std::vector<Write> later;
    for (std::uint64_t id = 1; id <= kBatches; ++id) {
      later.push_back(WorkersDrained{.target = fmt::format("host {}", id),
                                     .reason = "it is moved to another room",
                                     .by = "an operator",
                                     .since = any.finished_at});
    }
    for (std::uint64_t id = 1; id <= 4; ++id) {
      later.push_back(ResultDoubted{
          .job = {{id}, 3}, .flagged_at = any.finished_at, .reason = "another has other values"});
    }
    ASSERT_TRUE(store->Apply(later));
    const auto by_hand = OpenByHand();
    ASSERT_TRUE(SuspicionTable(*by_hand).Save({.what = {.worker = "another"}}));
    for (std::int64_t result = 2; result <= 5; ++result) {
      auto copied = by_hand->Start("INSERT INTO copied_results VALUES (?,?,?)");
      ASSERT_TRUE(copied && copied->Add(result).Add(1).AddChecksum().Run());
      const Elsewhere elsewhere{
          .coordinator = Uuid::Parse("00112233445566778899aabbccddeeff").value(), .job = {{7}, 8}};
      ASSERT_TRUE(ForeignTable(*by_hand).Insert(result + 4, elsewhere, any.finished_at));
    }
    for (std::int64_t run = 1; run <= 4; ++run) {
      auto merged = by_hand->Start("INSERT INTO merged_runs VALUES (?,?,?)");
      ASSERT_TRUE(merged && merged->Add(run << 32).Add(run << 32).AddChecksum().Run());
      auto retired = by_hand->Start("INSERT INTO retired_runs VALUES (?,?)");
      ASSERT_TRUE(retired && retired->Add(1000 + run).AddChecksum().Run());
    }
    const WallTime day{std::chrono::days(2)};
    Thinning pass({.measured_before = day, .keep_every = 2}, Thinning::Scope::kAll);
    while (!pass.is_over()) ASSERT_TRUE(store->Thin(pass, day));
    ASSERT_EQ(pass.count().results, kBatches / 3);
    // An old batch without jobs, and a newer one, which stays.
    for (const std::uint64_t id : {kBatches + 1, kBatches + 2}) {
      JobsAccepted empty = SomeBatch(id, {});
      if (id == kBatches + 1) empty.accepted_at = WallTime(std::chrono::days(1));
      ASSERT_TRUE(store->Apply(std::vector<Write>{empty}));
    }
    Pruning pruning({.finished_before = day, .asked_by = "a test"});
    while (!pruning.is_over()) ASSERT_TRUE(store->Prune(pruning, day));
    ASSERT_EQ(pruning.count().batches, 1u);
  }

  std::string ReadFile() {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void WriteFile(const std::string& bytes) { std::ofstream(path(), std::ios::binary) << bytes; }

  // The content of all tables, read without verifying checksums, by table and row number. Empty: it
  // cannot be read to the end.
  using Rows = std::map<std::string, std::string>;
  std::optional<Rows> Dump() {
    const auto connection = Connection::Open(path(), Access::kReadOnly, std::chrono::seconds(1));
    if (!connection) return std::nullopt;
    Rows rows;
    for (const auto& [table, columns] : kTables) {
      auto query = (*connection)->StartOnce(fmt::format("SELECT * FROM {}", table));
      if (!query) return std::nullopt;
      int number = 0;
      while (true) {
        const auto more = query->Next();
        if (!more) return std::nullopt;
        if (!*more) break;
        std::string row;
        for (int column = 0; column < columns; ++column) row += query->KeyText() + "|";
        rows[fmt::format("{} {}", table, number++)] = row;
      }
    }
    return rows;
  }

  const std::map<std::string, int> kTables = {
      {"batches", 10},          {"requests", 8},        {"jobs", 11},
      {"outcomes", 25},         {"results", 28},        {"hardware", 20},
      {"compilers", 5},         {"conditions", 8},      {"result_key_runs", 6},
      {"result_key_chunks", 3}, {"suspect_results", 4}, {"retention", 11},
      {"foreign_results", 6},   {"known_failures", 11}, {"drains", 5},
      {"device_states", 6},     {"suspicions", 10},     {"copied_results", 3},
      {"prunings", 12},         {"observations", 10},   {"merged_runs", 3},
      {"retired_runs", 2},      {"best_schedules", 14}, {"suspect_observations", 4},
      {"result_programs", 3}};
};

TEST_F(DatabaseCheckTest, AWholeDatabaseIsFound) {
  const DatabaseCheck check = CheckDatabase(path()).value();
  EXPECT_TRUE(check.ok()) << check.damage.front().table << ": " << check.damage.front().what;
  std::map<std::string, std::uint64_t> rows;
  for (const CheckedTable& table : check.tables) rows[table.name] = table.rows;
  EXPECT_EQ(rows["jobs"], 4 * kBatches);
  EXPECT_EQ(rows["outcomes"], 4 * kBatches);
  EXPECT_EQ(rows["results"], 2 * kBatches);
  EXPECT_GE(rows["result_key_runs"], 4u);
  EXPECT_FALSE(rows.contains("writer"));
}

// Otherwise a change in a table that is left out would count as free space.
TEST_F(DatabaseCheckTest, EveryTableWithChecksumsIsAmongThoseThatAreDumped) {
  const auto connection = OpenByHand();
  auto query = connection
                   ->Start(
                       "SELECT m.name, count(*) FROM sqlite_schema m, pragma_table_info(m.name)"
                       " WHERE m.type = 'table' GROUP BY m.name "
                       "HAVING max(pragma_table_info.name LIKE 'checksum%')")
                   .value();
  std::map<std::string, int> tables;
  while (query.Next().value()) {
    std::string name(query.Text());
    tables[std::move(name)] = query.Int<int>();
  }
  tables.erase("writer");  // every start changes it
  EXPECT_EQ(tables, kTables);
  for (const auto& [table, columns] : kTables) {
    EXPECT_GT(NumberByHand(fmt::format("SELECT count(*) FROM {}", table).c_str()), 0) << table;
  }
}

TEST_F(DatabaseCheckTest, EveryRowThatABitChanged) {
  const std::string whole = ReadFile();
  const Rows before = Dump().value();
  SplitMix64 random(11);
  int changed = 0;
  int missed_by_sqlite = 0;
  for (int flip = 0; flip < kFlips && !HasFailure(); ++flip) {
    const std::size_t place = random.Below(whole.size());
    const int bit = static_cast<int>(random.Below(8));
    SCOPED_TRACE(fmt::format("bit {} of byte {}", bit, place));
    std::string bytes = whole;
    bytes[place] = static_cast<char>(bytes[place] ^ 1 << bit);
    WriteFile(bytes);
    const auto after = Dump();
    const auto check = CheckDatabase(path());
    if (after && *after == before) continue;  // free space, or the writer's own row
    ++changed;
    // No crash: a typed error of opening the file, or damage that names the table.
    if (!check) {
      EXPECT_TRUE(check.error().kind == ErrorKind::kCorrupt ||
                  check.error().kind == ErrorKind::kInvalid ||
                  check.error().kind == ErrorKind::kSystem)
          << check.error().message;
      continue;
    }
    EXPECT_FALSE(check->ok()) << "a changed row was not found out";
    bool only_rows = true;
    std::set<std::string> damaged_tables;
    for (const Damage& damage : check->damage) {
      only_rows &= !damage.table.empty();
      damaged_tables.insert(damage.table);
    }
    missed_by_sqlite += only_rows;

    // Undamaged rows are served; damaged ones are refused.
    const auto reader = SqliteReader::Open(path());
    if (!reader) continue;
    for (std::uint64_t id = 1; id <= kBatches; ++id) {
      const auto outcomes = (*reader)->ReadOutcomes({id}, 0, {.max_rows = 10});
      if (!outcomes) {
        EXPECT_TRUE(outcomes.error().kind == ErrorKind::kCorrupt ||
                    outcomes.error().kind == ErrorKind::kInvalid)
            << outcomes.error().message;
        continue;
      }
      for (const Outcome& outcome : *outcomes) {
        if (!outcome.evaluation.ok()) continue;
        if (!outcome.evaluation.is_timed()) {
          EXPECT_EQ(outcome.evaluation, Observing(static_cast<std::uint8_t>(id)));
          continue;
        }
        Evaluation stored = StoredMeasurement(id, outcome.job.index);
        // A device state whose key has changed is not found: its result is read without it, and the
        // check names the table.
        if (damaged_tables.contains("device_states") && !outcome.evaluation.measurement().device) {
          std::get<Measurement>(stored.verdict).device.reset();
        }
        EXPECT_EQ(outcome.evaluation, stored) << "a damaged row was used";
      }
    }
  }
  EXPECT_GT(changed, kFlips / 4);
  EXPECT_GT(missed_by_sqlite, changed / 4) << "then checksums would not be needed";
  RecordProperty("changed", changed);
  RecordProperty("missed_by_sqlite", missed_by_sqlite);
}

TEST_F(DatabaseCheckTest, RowsThatAreGone) {
  const std::string whole = ReadFile();
  for (const auto& [sql, table] :
       {std::pair{"DELETE FROM jobs WHERE batch = 3 AND idx = 1", "jobs"},
        std::pair{"DELETE FROM outcomes WHERE batch = 3 AND idx = 1", "outcomes"},
        std::pair{"DELETE FROM results WHERE id = 7", "results"},
        std::pair{"DELETE FROM retention", "retention"},
        std::pair{"DELETE FROM requests WHERE batch = 4", "requests"},
        std::pair{"DELETE FROM batches WHERE id = 5", "batches"}}) {
    SCOPED_TRACE(sql);
    RunByHand(sql);
    const DatabaseCheck check = CheckDatabase(path()).value();
    EXPECT_FALSE(check.ok());
    EXPECT_TRUE(std::ranges::any_of(check.damage,
                                    [&](const Damage& damage) { return damage.table == table; }));
    WriteFile(whole);
  }
}

TEST_F(DatabaseCheckTest, ADamagedRowIsNamed) {
  RunByHand("UPDATE jobs SET actions = 'up' WHERE batch = 12 AND idx = 3");
  const DatabaseCheck check = CheckDatabase(path()).value();
  ASSERT_EQ(check.damage_count, 1u);
  EXPECT_EQ(check.damage[0].table, "jobs");
  EXPECT_EQ(check.damage[0].row, "12.3");
  EXPECT_EQ(check.damage[0].what, "not what was written");
}

TEST_F(DatabaseCheckTest, AFileThatIsCutOff) {
  const std::string whole = ReadFile();
  for (std::size_t size = 0; size < whole.size(); size += 512 * 37) {
    SCOPED_TRACE(fmt::format("{} of {} bytes", size, whole.size()));
    WriteFile(whole.substr(0, size));
    const auto check = CheckDatabase(path());
    EXPECT_TRUE(!check || !check->ok() || size == 0);
  }
}

TEST_F(DatabaseCheckTest, WhatIsNotThereOrNotOurs) {
  EXPECT_EQ(CheckDatabase(directory() / "none.db").error().kind, ErrorKind::kNotFound);
  WriteFile("This is a letter, and has been one for more than sixteen bytes.\n");
  EXPECT_EQ(CheckDatabase(path()).error().kind, ErrorKind::kCorrupt);
}

}  // namespace
}  // namespace loopfleet::storage
