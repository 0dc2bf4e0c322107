// What a person sees in the sqlite3 shell.

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "common/base/check.h"
#include "common/base/random.h"
#include "common/job/profile.h"
#include "tests/support/paths.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

class ViewsTest : public ScratchDatabase {
 protected:
  // Job 0 slow, job 1 fast, job 2 failed, all of one benchmark; job 3 a program of its own.
  void SetUp() override {
    JobSpec fast = PlainSpec(4);
    fast.actions = {looptree::Split{16}};
    Evaluation quick = SomeMeasurement(2);
    std::get<Measurement>(quick.verdict).elapsed_ns = 1000;
    const std::vector<Write> group = {
        SomeBatch(1, {PlainSpec(4), fast, PlainSpec(4), FullSpec()}),
        JobFinished{SomeOutcome({.index = 0, .sequence = 1}, PlainSpec(4), SomeMeasurement(1))},
        JobFinished{SomeOutcome({.index = 1, .sequence = 2}, fast, quick)},
        JobFinished{SomeOutcome({.index = 2, .sequence = 3}, PlainSpec(4),
                                SomeFailure(FailureCode::kRunCrash))},
        JobFinished{SomeOutcome({.index = 3, .sequence = 4}, FullSpec(),
                                BareFailure(FailureCode::kNoMatchingWorker))}};
    ASSERT_TRUE(OpenStore()->Apply(group));
  }

  // All rows, with columns separated by "|" and "-" for NULL.
  std::vector<std::string> Rows(const char* sql, int columns) {
    const auto connection = OpenByHand();
    auto query = connection->Start(sql).value();
    std::vector<std::string> rows;
    while (query.Next().value()) {
      std::string row;
      for (int column = 0; column < columns; ++column) {
        row += (column ? "|" : "") + query.OptionalText().value_or("-");
      }
      rows.push_back(row);
    }
    return rows;
  }
};

TEST_F(ViewsTest, SamplesAreJsonOfTheSameNumbers) {
  const auto connection = OpenByHand();
  auto query = connection
                   ->Start(
                       "SELECT r.samples_ns, s.samples_ns, s.sample_flags FROM results r "
                       "JOIN v_samples s ON s.result = r.id")
                   .value();
  int rows = 0;
  for (;;) {
    const auto is_row = query.Next();
    ASSERT_TRUE(is_row) << is_row.error().message;
    if (!*is_row) break;
    const auto blob = query.Blob();
    std::vector<double> expected(blob.size() / sizeof(double));
    ASSERT_FALSE(expected.empty());
    std::memcpy(expected.data(), blob.data(), blob.size());
    const auto samples = nlohmann::json::parse(query.Text()).get<std::vector<double>>();
    ASSERT_EQ(samples.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(samples[i], expected[i], 1e-14 * expected[i]);
    }
    EXPECT_EQ(query.Text(), "[0,1,0,0]");
    ++rows;
  }
  EXPECT_EQ(rows, 2);
}

// Powers of two and their neighbours, below 1 ns and far above.
TEST_F(ViewsTest, SamplesOfEveryMagnitude) {
  const std::vector<double> samples = {1,    2,     0.75,     std::nextafter(1.0, 2.0),   1e-9,
                                       1e15, 2e-12, 12345.25, std::nextafter(4096.0, 0.0)};
  std::string hex;
  for (const double sample : samples) {
    for (const std::uint8_t byte : std::bit_cast<std::array<std::uint8_t, 8>>(sample)) {
      hex += fmt::format("{:02X}", byte);
    }
  }
  RunByHand(
      fmt::format("UPDATE results SET samples_ns = x'{}', sample_flags = zeroblob({}) WHERE id = 1",
                  hex, samples.size()));
  const std::string text = Rows("SELECT samples_ns FROM v_samples WHERE result = 1", 1).at(0);
  const auto read = nlohmann::json::parse(text).get<std::vector<double>>();
  ASSERT_EQ(read.size(), samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i)
    EXPECT_NEAR(read[i], samples[i], 1e-14 * samples[i]);
  RunByHand("UPDATE results SET samples_ns = x'', sample_flags = x'' WHERE id = 1");
  EXPECT_EQ(Rows("SELECT samples_ns, sample_flags FROM v_samples WHERE result = 1", 2).at(0),
            "[]|[]");
}

TEST_F(ViewsTest, CountsActions) {
  EXPECT_EQ(Rows("SELECT idx, actions, action_count FROM v_results ORDER BY idx LIMIT 2", 3),
            (std::vector<std::string>{"0|down,swap_up,split_4|3", "1|split_16|1"}));
  RunByHand("UPDATE jobs SET actions = '' WHERE idx = 0");
  EXPECT_EQ(Rows("SELECT action_count FROM v_results WHERE \"index\" = 0", 1).at(0), "0");
}

TEST_F(ViewsTest, Results) {
  EXPECT_EQ(
      Rows("SELECT benchmark, actions, substr(tree_key, 1, 4), status, "
           "round(gflop_per_second, 3), elapsed_ns, spread, grade, sample_count, failure "
           "FROM v_results WHERE batch = 1 ORDER BY \"index\" LIMIT 3",
           10),
      (std::vector<std::string>{
          "benchmark://mm-v0/mm64_64_4|down,swap_up,split_4|0101|ok|104.831|5001.25|0.004|B|4|-",
          "benchmark://mm-v0/mm64_64_4|split_16|0202|ok|524.288|1000.0|0.004|B|4|-",
          "benchmark://mm-v0/mm64_64_4|down,swap_up,split_4|c8c8|failed|-|-|-|-|-|RUN_CRASH"}));
  EXPECT_EQ(
      Rows("SELECT source, worker, hardware_class, isa, llvm, finished_at, attempts, threads, "
           "cache FROM v_results WHERE \"index\" = 0",
           9),
      (std::vector<std::string>{"measured|worker-1|cpu:AuthenticAMD:25.1.1:avx2|avx2|19.1.7|"
                                "2023-11-14T22:13:21.000Z|2|2|cold"}));
  EXPECT_EQ(Rows("SELECT failure, message, tree_key, hardware_class FROM v_results "
                 "WHERE \"index\" = 3",
                 4),
            (std::vector<std::string>{"NO_MATCHING_WORKER|no more is known|-|-"}));
}

TEST_F(ViewsTest, Best) {
  EXPECT_EQ(Rows("SELECT benchmark, round(gflop_per_second, 3), actions, outcomes FROM v_best", 4),
            (std::vector<std::string>{"benchmark://mm-v0/mm64_64_4|524.288|split_16|2"}));
}

// A lucky first figure does not count once the kernel is measured again.
TEST_F(ViewsTest, BestIsTheMedianOfAKernelMeasuredSeveralTimes) {
  JobSpec fast = PlainSpec(4);
  fast.actions = {looptree::Split{16}};
  std::vector<Write> again = {SomeBatch(2, {fast, fast, fast})};
  for (std::uint32_t index = 0; index < 3; ++index) {
    Evaluation slower = SomeMeasurement(2);
    std::get<Measurement>(slower.verdict).elapsed_ns = 2000 + 100 * index;
    slower.same_code = index == 2;  // a copy of another figure is no measurement
    again.push_back(JobFinished{
        SomeOutcome({.batch = 2, .index = index, .sequence = index + 1U}, fast, slower)});
  }
  ASSERT_TRUE(OpenStore()->Apply(again));
  EXPECT_EQ(Rows("SELECT actions, elapsed_ns, measurements, outcomes FROM v_best", 4),
            (std::vector<std::string>{"split_16|2000.0|3|4"}));
}

// The view's text in the migration that made it so.
std::string ViewOf(const std::string& migration, const std::string& name) {
  std::ifstream file(LOOPFLEET_SOURCE_DIR "/storage/sqlite/migrations/" + migration);
  const std::string sql(std::istreambuf_iterator<char>(file), {});
  const std::size_t start = sql.find("CREATE VIEW " + name + " AS");
  LF_CHECK(start != std::string::npos, "{} has no {}", migration, name);
  return sql.substr(start, sql.find(";\n", start) - start);
}

// Version 8 said what v_best is: a window over all columns of v_results.
TEST_F(ViewsTest, BestHasTheRowsOfItsFirstDefinition) {
  constexpr std::uint64_t kBatches = 120;
  constexpr std::uint32_t kJobs = 10;
  constexpr const char* kColumns =
      "benchmark, hardware_class, gflop_per_second, elapsed_ns, spread, grade, actions, tree_key, "
      "worker, finished_at, measurements, outcomes";
  SplitMix64 random(8);
  std::vector<Write> writes;
  std::vector<JobId> doubted;
  for (std::uint64_t batch = 2; batch < 2 + kBatches; ++batch) {
    std::vector<JobSpec> jobs;
    std::vector<Write> finished;
    for (std::uint32_t index = 0; index < kJobs; ++index) {
      const auto benchmark = static_cast<int>(random.Below(12));
      JobSpec job = benchmark < 11 ? PlainSpec(100 + benchmark) : FullSpec();
      const bool is_usual = random.Below(4) != 0;  // measured many times
      const auto tree =
          static_cast<std::uint8_t>(is_usual ? random.Below(2) : 2 + random.Below(250));
      Evaluation evaluation = SomeMeasurement(tree);
      auto& measurement = std::get<Measurement>(evaluation.verdict);
      measurement.elapsed_ns = 1'000 + static_cast<double>(random.Next() >> 40) / 1e3;
      if (is_usual) measurement.elapsed_ns /= 3;
      measurement.grade = static_cast<Grade>(random.Below(4));
      Conditions& conditions = *evaluation.conditions;
      conditions.hardware.host = fmt::format("host {}", random.Below(3));
      conditions.hardware.hardware_class = fmt::format("class {}", random.Below(2));
      conditions.threads = 1 + static_cast<std::uint32_t>(random.Below(2));
      conditions.cache = random.Below(2) == 0 ? CacheState::kWarm : CacheState::kCold;
      evaluation.same_code = random.Below(10) == 0;
      if (random.Below(10) == 0) evaluation = SomeFailure(FailureCode::kRunCrash);
      const Finish finish{.batch = batch, .index = index, .sequence = index + 1U};
      Outcome outcome = SomeOutcome(finish, job, evaluation);
      outcome.worker = fmt::format("worker {}", random.Below(3));
      jobs.push_back(std::move(job));
      if (random.Below(8) == 0) doubted.push_back(outcome.job);
      finished.emplace_back(JobFinished{std::move(outcome)});
    }
    writes.emplace_back(SomeBatch(batch, std::move(jobs)));
    writes.insert(writes.end(), finished.begin(), finished.end());
  }
  for (const JobId& job : doubted) writes.emplace_back(ResultDoubted{.job = job, .reason = "why"});
  ASSERT_TRUE(OpenStore()->Apply(writes));
  RunByHand("DELETE FROM outcomes WHERE batch = 7");  // pruned; the results stay

  const auto connection = OpenByHand();
  std::string former = ViewOf("0008_code_results.sql", "v_best");
  former.replace(former.find("v_best"), 6, "first_best");
  ASSERT_TRUE(connection->Run(former.c_str()));
  const auto rows = [&](const char* view) {
    return Rows(fmt::format("SELECT {} FROM {}", kColumns, view).c_str(), 12);
  };
  const auto best = rows("v_best");
  EXPECT_EQ(best, rows("first_best"));
  EXPECT_EQ(best.size(), 24U + 1U);  // with the benchmark of SetUp()
  EXPECT_GT(NumberByHand("SELECT count(*) FROM v_best WHERE measurements > 2"), 2);
  EXPECT_GT(NumberByHand("SELECT count(*) FROM v_best WHERE measurements = 1"), 2);
}

// The schema itself refuses contradictions from any writer.
TEST_F(ViewsTest, AFailureHasNoTime) {
  const auto connection = OpenByHand();
  const auto refused = [&](const char* sql) {
    const Status status = connection->Run(sql);
    return !status && status.error().message.find("CHECK") != std::string::npos;
  };
  EXPECT_TRUE(refused("UPDATE outcomes SET result = 1 WHERE idx = 2"));
  EXPECT_TRUE(refused("UPDATE outcomes SET result = NULL WHERE idx = 0"));
  EXPECT_TRUE(refused("UPDATE outcomes SET failure_code = NULL WHERE idx = 2"));
  EXPECT_TRUE(refused("UPDATE outcomes SET failed_tree_key = x'00' WHERE idx = 0"));
  EXPECT_TRUE(refused("UPDATE results SET elapsed_ns = 0"));
  EXPECT_TRUE(refused("UPDATE jobs SET benchmark = NULL WHERE idx = 0"));
}

// The examples of docs/DATABASE.md, run on a database that a real cluster wrote.
class DocumentedTest : public ScratchDatabase {
 protected:
  void SetUp() override {
    std::filesystem::copy_file(LOOPFLEET_SOURCE_DIR "/tests/golden/storage/version3.db", path());
    const auto store = OpenStore();
    constexpr std::uint64_t kNext = 1000;  // beyond the batches of that database
    Evaluation observing = SomeMeasurement(1);
    observing.verdict = Observed{.values = {{"clock_mhz", 3700.0}}};
    const JobSpec probe{.source = looptree::BenchmarkUri{"probe://peaks-v0"}};
    JobSpec profile = PlainSpec(4);
    profile.profile = ProfileLevel::kLines;
    Evaluation profiled = SomeMeasurement(1);
    profiled.verdict = ToObserved(
        {.level = ProfileLevel::kLines,
         .overhead = 0.25,
         .lines = {{.place = {.ref = 0, .part = ProfilePart::kPack}, .share = 0.5, .samples = 2},
                   {.place = {.ref = 3}, .share = 0.25, .low = 0.125, .high = 0.5, .samples = 1}}});
    ASSERT_TRUE(store->Apply(std::vector<Write>{
        SomeBatch(kNext, {probe, profile}),
        JobFinished{SomeOutcome({.batch = kNext}, probe, observing)},
        JobFinished{SomeOutcome({.batch = kNext, .index = 1, .sequence = 2}, profile, profiled)}}));
    std::ifstream file(LOOPFLEET_SOURCE_DIR "/docs/DATABASE.md");
    page_.assign(std::istreambuf_iterator<char>(file), {});
    ASSERT_FALSE(page_.empty());
  }

  struct Answer {
    std::vector<std::string> columns;
    int rows = 0;
  };
  Answer Ask(const std::string& sql) {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open_v2(path().c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    const int prepared = sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr);
    EXPECT_EQ(prepared, SQLITE_OK) << sql << ": " << sqlite3_errmsg(database);
    Answer answer;
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      answer.columns.emplace_back(sqlite3_column_name(statement, i));
    }
    int code = sqlite3_step(statement);
    for (; code == SQLITE_ROW; code = sqlite3_step(statement)) ++answer.rows;
    EXPECT_EQ(code, SQLITE_DONE) << sql << ": " << sqlite3_errmsg(database);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return answer;
  }

  std::vector<std::string> Names(const char* sql) {
    const auto connection = OpenByHand();
    auto query = connection->Start(sql).value();
    std::vector<std::string> names;
    while (query.Next().value()) names.emplace_back(query.Text());
    return names;
  }

  // "│ benchmark │ gflops │" -> benchmark, gflops.
  static std::vector<std::string> Cells(const std::string& line) {
    std::string plain = line;
    const std::string bar = "│";
    for (auto at = plain.find(bar); at != std::string::npos; at = plain.find(bar, at)) {
      plain.replace(at, bar.size(), "\n");
    }
    std::istringstream words(plain);
    std::vector<std::string> cells;
    for (std::string word; words >> word;) cells.push_back(word);
    return cells;
  }

  std::string page_;
};

TEST_F(DocumentedTest, EveryQueryGivesTheColumnsThatAreShown) {
  const std::string prompt = "sqlite> ";
  int queries = 0;
  for (auto at = page_.find(prompt); at != std::string::npos; at = page_.find(prompt, at + 1)) {
    const auto end = page_.find(";\n", at);
    ASSERT_NE(end, std::string::npos);
    const std::string sql = page_.substr(at + prompt.size(), end - at - prompt.size());
    SCOPED_TRACE(sql);
    const auto head = page_.find("│", end);
    ASSERT_NE(head, std::string::npos);
    const Answer answer = Ask(sql);
    EXPECT_EQ(answer.columns, Cells(page_.substr(head, page_.find('\n', head) - head)));
    EXPECT_TRUE(answer.rows > 0 || sql.find("options IS NOT NULL") != std::string::npos);
    ++queries;
  }
  EXPECT_GE(queries, 4);
}

// Every view can be read to its end, and the page describes it.
TEST_F(DocumentedTest, EveryViewIsReadToItsEnd) {
  const auto views = Names("SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY name");
  EXPECT_EQ(views, (std::vector<std::string>{"v_best", "v_observations", "v_profiles", "v_results",
                                             "v_samples"}));
  for (const std::string& view : views) {
    const Answer answer = Ask("SELECT * FROM " + view);
    EXPECT_GT(answer.rows, 0) << view;
    EXPECT_NE(page_.find(view), std::string::npos);
  }
  EXPECT_EQ(Ask("SELECT * FROM v_results").rows, 5);
}

TEST_F(DocumentedTest, AProfileHasARowForEachLine) {
  EXPECT_EQ(Ask("SELECT * FROM v_profiles").rows, 2);
  EXPECT_EQ(Ask("SELECT * FROM v_profiles WHERE ref = 'L0' AND part = 'pack' AND share = 0.5 AND "
                "samples = 2 AND level = 'lines' AND overhead = 0.25")
                .rows,
            1);
  EXPECT_EQ(Ask("SELECT * FROM v_profiles WHERE ref = 'L3' AND part = 'node' AND low = 0.125 AND "
                "high = 0.5 AND idx = 1")
                .rows,
            1);
}

TEST_F(DocumentedTest, TheTableOfVResultsIsTheView) {
  const auto begin = page_.find("### v_results");
  const auto end = page_.find("\n\n", begin);
  ASSERT_NE(end, std::string::npos);
  std::istringstream lines(page_.substr(begin, end - begin));
  std::set<std::string> told;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string names = line.substr(2, line.find(" |", 2) - 2);
    for (auto at = names.find('`'); at != std::string::npos; at = names.find('`', at + 1)) {
      const auto close = names.find('`', at + 1);
      told.insert(names.substr(at + 1, close - at - 1));
      at = close;
    }
  }
  const auto columns = Ask("SELECT * FROM v_results").columns;
  EXPECT_EQ(told, std::set<std::string>(columns.begin(), columns.end()));
}

// Their columns are in storage/sqlite/migrations/, which the page names.
TEST_F(DocumentedTest, EveryTableIsTold) {
  for (const std::string& table :
       Names("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND "
             "name NOT LIKE 'sqlite%'")) {
    EXPECT_NE(page_.find("`" + table + "`"), std::string::npos) << table;
  }
  EXPECT_NE(page_.find("(../storage/sqlite/migrations/)"), std::string::npos);
}

}  // namespace
}  // namespace loopfleet::storage
