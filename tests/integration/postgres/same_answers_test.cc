// PostgreSQL answers look-ups, and says which schedules are the best, as SQLite does: random
// figures in both, random questions to both. Runs under with_server.py, which starts the server.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/looptree/datasets/benchmark.h"
#include "common/looptree/text/text.h"
#include "common/looptree/tree/key.h"
#include "storage/outcome_feed.h"
#include "storage/postgres/archive.h"
#include "storage/postgres/best_rows.h"
#include "storage/postgres/shared_results.h"
#include "tests/support/paths.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

class SameAnswers : public ScratchDatabase {
 protected:
  static constexpr WallTime kThen{std::chrono::hours(480'000)};
  static constexpr int kTrees = 5;

  void SetUp() override {
    const char* url = std::getenv("LOOPFLEET_TEST_POSTGRES");
    ASSERT_NE(url, nullptr) << "run it by with_server.py";
    url_ = url;
  }

  // Figures of few trees, with every grade, of several spreads, ages and conditions; some in doubt.
  void Measure(int count, SplitMix64& random) {
    const auto store = OpenStore();
    for (int i = 1; i <= count; ++i) {
      Evaluation evaluation = SomeMeasurement(static_cast<std::uint8_t>(1 + random.Below(kTrees)));
      auto& measurement = std::get<Measurement>(evaluation.verdict);
      measurement.grade = static_cast<Grade>(random.Below(4));
      measurement.spread = 0.01 * static_cast<double>(1 + random.Below(10));
      measurement.elapsed_ns = 1'000.0 + i;  // names the figure
      measurement.elapsed_low_ns = 900;
      measurement.elapsed_high_ns = 9'000;
      evaluation.conditions->threads = 1 + static_cast<std::uint32_t>(random.Below(2));
      const auto batch = static_cast<std::uint64_t>(i);
      Outcome outcome = SomeOutcome({.batch = batch}, PlainSpec(4), evaluation);
      outcome.finished_at = kThen + std::chrono::minutes(i);
      std::vector<Write> writes = {SomeBatch(batch, {PlainSpec(4)}),
                                   JobFinished{.outcome = outcome}};
      if (random.Below(4) == 0) {
        writes.push_back(
            ResultDoubted{.job = outcome.job, .flagged_at = kThen, .reason = "a test"});
      }
      ASSERT_TRUE(store->Apply(writes));
    }
  }

  void CopyToPostgres(const Uuid& incarnation) {
    const auto reader = OpenReader();
    auto archive =
        PostgresArchive::Open({.url = url_, .incarnation = incarnation, .name = "a test"});
    ASSERT_TRUE(archive) << archive.error().message;
    auto position = (*archive)->Position().value();
    while (true) {
      FeedStep step = NextOutcomes(*reader, position.outcomes, 64).value();
      const auto doubts = reader->ListDoubts(position.doubt, 8).value();
      if (doubts.size() == 8) step = {.after = position.outcomes};  // as Mirror does
      if (step.outcomes.empty() && doubts.empty()) return;
      const Status appended = (*archive)->Append(position.outcomes, step, doubts);
      ASSERT_TRUE(appended) << appended.error().message;
      position.outcomes = step.after;
      if (!doubts.empty()) position.doubt = doubts.back().number;
    }
  }

  std::string url_;
};

TEST_F(SameAnswers, AsSqlite) {
  SplitMix64 random(28);
  Measure(120, random);
  const Uuid measuring = Uuid::Random();
  CopyToPostgres(measuring);
  CopyToPostgres(measuring);  // there is nothing new

  const Uuid asking = Uuid::Random();
  auto shared = SharedResults::Open(url_, asking);
  ASSERT_TRUE(shared) << shared.error().message;
  EXPECT_TRUE((*shared)->HasOthers().value());
  const auto reader = OpenReader();
  std::vector<ResultKey> keys;
  for (int i = 0; i < 600; ++i) {
    ResultKey key =
        KeyFor(SomeMeasurement(static_cast<std::uint8_t>(1 + random.Below(kTrees + 1))));
    key.threads = 1 + static_cast<std::uint32_t>(random.Below(3));
    key.precision = 0.01 * static_cast<double>(random.Below(8));
    key.min_grade = static_cast<Grade>(random.Below(4));
    if (random.Below(2) == 0) key.measured_since = kThen + std::chrono::minutes(random.Below(120));
    if (random.Below(20) == 0) key.compiler.revision += " of another";
    if (random.Below(20) == 0) key.hardware_class += " of another";
    keys.push_back(std::move(key));
  }
  const auto answers = (*shared)->Find(keys);
  ASSERT_TRUE(answers) << answers.error().message;
  int found = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    SCOPED_TRACE(i);
    const StoredAnswer here = reader->FindResult(keys[i]).value();
    const StoredAnswer there = answers->at(i);
    ASSERT_EQ(here == nullptr, there == nullptr);
    if (here == nullptr) continue;
    ++found;
    EXPECT_EQ(there->measured_at, here->measured_at);
    EXPECT_EQ(there->worker, here->worker);
    EXPECT_EQ(there->evaluation, here->evaluation);
    ASSERT_TRUE(there->elsewhere);
    EXPECT_EQ(there->elsewhere->coordinator, measuring);
    EXPECT_EQ(there->elsewhere->job.batch.value,
              static_cast<std::uint64_t>(there->evaluation.measurement().elapsed_ns) - 1'000);
  }
  EXPECT_GT(found, 100);
  EXPECT_LT(found, 500);

  // Its own results are no news to it.
  auto own = SharedResults::Open(url_, measuring);
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_FALSE((*own)->HasOthers().value());
  const auto none = (*own)->Find(keys);
  ASSERT_TRUE(none) << none.error().message;
  for (const StoredAnswer& answer : *none) EXPECT_EQ(answer, nullptr);
}

// SQLite answers its own jobs with them; to others they would look whole.
TEST_F(SameAnswers, ResultsWithoutAllTheirSamplesAreNotShared) {
  const std::string hardware_class = "class of thinned results";
  Outcome outcome = SomeOutcome({}, PlainSpec(4), SomeMeasurement(1));
  outcome.evaluation.conditions->hardware.hardware_class = hardware_class;
  const auto sample_count = [&](std::optional<Thinned> thinned) {
    std::get<Measurement>(outcome.evaluation.verdict).thinned = thinned;
    outcome.job.batch.value += 1;
    const Uuid incarnation = Uuid::Random();
    auto archive = PostgresArchive::Open({.url = url_, .incarnation = incarnation});
    EXPECT_TRUE(archive && (*archive)->Position());
    EXPECT_TRUE((*archive)->Append({}, {.outcomes = {outcome}, .after = {.last = {1}}}, {}));
    pqxx::connection connection(url_);
    pqxx::nontransaction work(connection);
    return work
        .exec_params1("SELECT sample_count FROM loopfleet.v_results WHERE coordinator = $1::uuid",
                      incarnation.ToString())[0]
        .as<std::size_t>();
  };
  const auto is_shared = [&] {
    auto shared = SharedResults::Open(url_, Uuid::Random());
    return (*shared)->Find(std::vector{KeyFor(outcome.evaluation)}).value().at(0) != nullptr;
  };
  EXPECT_EQ(sample_count(Thinned{.samples_before = 77, .accepted_before = 70}), 77);
  EXPECT_FALSE(is_shared());
  EXPECT_EQ(sample_count(std::nullopt), outcome.evaluation.measurement().samples_ns.size());
  EXPECT_TRUE(is_shared());
}

// Whether each outcome is in doubt: measured, of the same code, or stored.
TEST_F(SameAnswers, SuspectsAsSqlite) {
  SplitMix64 random(4);
  std::vector<Evaluation> measured;
  int repeats = 0;
  {
    const auto store = OpenStore();
    for (std::uint64_t batch = 1; batch <= 150; ++batch) {
      const WallTime now = kThen + std::chrono::hours(1'000) + std::chrono::minutes(batch);
      Evaluation evaluation = SomeMeasurement(static_cast<std::uint8_t>(200 + random.Below(20)));
      auto& figure = std::get<Measurement>(evaluation.verdict);
      figure.elapsed_mean_ns += static_cast<double>(batch);  // names the figure
      evaluation.code_hash = fmt::format("code {}", random.Below(10));
      std::vector<Write> writes = {SomeBatch(batch, {PlainSpec(4)})};
      const auto kind = measured.empty() ? 0 : random.Below(3);
      if (kind == 1) {
        const Evaluation& original = measured[random.Below(measured.size())];
        evaluation.verdict = original.verdict;
        evaluation.code_hash = original.code_hash;
        evaluation.same_code = true;
      }
      const auto answer =
          kind == 2 ? store->OpenReader().value()->FindResult(KeyFor(evaluation)).value() : nullptr;
      if (answer) {
        writes.push_back(JobsAnswered{
            .finished_at = now, .jobs = {{.job = {{batch}, 0}, .sequence = 1, .answer = answer}}});
      } else {
        Outcome outcome = SomeOutcome({.batch = batch}, PlainSpec(4), evaluation);
        outcome.finished_at = now;
        outcome.worker = fmt::format("worker {}", random.Below(3));
        if (!evaluation.same_code) measured.push_back(evaluation);
        writes.push_back(JobFinished{.outcome = outcome});
      }
      repeats += answer || evaluation.same_code ? 1 : 0;
      if (random.Below(4) == 0) {
        writes.push_back(ResultDoubted{.job = {{1 + random.Below(batch)}, 0},
                                       .flagged_at = now,
                                       .reason = fmt::format("reason {}", batch)});
      }
      if (random.Below(20) == 0) {
        writes.push_back(ResultsSuspected{.worker = fmt::format("worker {}", random.Below(3)),
                                          .since = now - std::chrono::minutes(5),
                                          .flagged_at = now,
                                          .reason = fmt::format("drift {}", batch)});
      }
      ASSERT_TRUE(store->Apply(writes));
    }
  }
  const Uuid coordinator = Uuid::Random();
  CopyToPostgres(coordinator);

  pqxx::connection connection(url_);
  pqxx::nontransaction work(connection);
  int repeats_in_doubt = 0;
  for (const auto& row :
       work.exec_params("SELECT batch, source, suspect IS NOT NULL FROM loopfleet.v_results "
                        "WHERE coordinator = $1::uuid ORDER BY batch",
                        coordinator.ToString())) {
    SCOPED_TRACE(row[0].as<int>());
    const std::string sql =
        fmt::format("SELECT suspect IS NOT NULL FROM v_results WHERE batch = {}", row[0].as<int>());
    EXPECT_EQ(row[2].as<bool>(), NumberByHand(sql.c_str()) != 0);
    const bool is_repeat = row[1].as<std::string>() != "measured";
    repeats_in_doubt += is_repeat && row[2].as<bool>() ? 1 : 0;
  }
  EXPECT_GT(repeats, 50);
  EXPECT_GT(repeats_in_doubt, 10);
}

// A product of matrices, as the name of a benchmark and as IR text with other names: one program.
class Program {
 public:
  explicit Program(int size) : uri_{fmt::format("benchmark://mm-v0/mm8_8_{}", size)} {
    const auto opened = looptree::OpenBenchmark(uri_);
    LF_CHECK(opened.has_value(), "{} is no benchmark", uri_.text);
    key_ = looptree::ProgramKeyOf(opened->start.program());
    ir_.text = looptree::IrTextOf(opened->start);
    ir_.text.replace(ir_.text.find("v:m"), 3, "v:rows");
  }
  const ProgramKey& key() const { return key_; }
  JobSpec Spec(bool as_ir) const {
    return {.source = as_ir ? looptree::Source(ir_) : looptree::Source(uri_),
            .actions = {looptree::Down{}}};
  }

 private:
  looptree::BenchmarkUri uri_;
  looptree::IrText ir_;
  ProgramKey key_;
};

class SameBest : public SameAnswers {
 protected:
  static constexpr int kTreesOfProgram = 7;  // fewer than are kept, so that each counts
  static inline const std::vector<Program> programs{Program(10), Program(11), Program(12)};

  void SetUp() override {
    SameAnswers::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    connection_ = std::make_unique<pqxx::connection>(url_);
  }

  static Outcome Measured(std::uint64_t batch, const JobSpec& spec, std::uint8_t tree,
                          double elapsed_ns, const std::string& hardware_class) {
    Evaluation evaluation = SomeMeasurement(tree);
    std::get<Measurement>(evaluation.verdict).elapsed_ns = elapsed_ns;
    evaluation.conditions->hardware.hardware_class = hardware_class;
    evaluation.conditions->threads = 1;
    evaluation.conditions->cache = CacheState::kWarm;
    Outcome outcome = SomeOutcome({.batch = batch}, spec, evaluation);
    outcome.finished_at = kThen + std::chrono::minutes(batch);
    return outcome;
  }

  using Answer = std::vector<std::tuple<std::string, double, std::uint64_t>>;  // tree, ns, batch
  Answer Here(const BestQuery& query) {
    const auto found = OpenReader()->FindBest(query).value();
    Answer answer;
    for (const BestSchedule& best : found) {
      answer.emplace_back(best.measured.evaluation.subject->ToString(),
                          best.measured.evaluation.measurement().elapsed_ns, best.job.batch.value);
    }
    return answer;
  }
  Answer There(const BestQuery& query) {
    pqxx::nontransaction work(*connection_);
    Answer answer;
    for (const auto& row :
         work.exec_params("SELECT encode(tree_key, 'hex'), elapsed_ns, batch FROM loopfleet.best "
                          "WHERE program = decode($1, 'hex') AND threads = $2 AND cache = $3 "
                          "AND ($4 = '' OR hardware_class = $4) ORDER BY elapsed_ns LIMIT $5",
                          query.program.ToString(), query.threads,
                          std::string(EnumName(query.cache)), query.hardware_class, query.max)) {
      answer.emplace_back(row[0].as<std::string>(), row[1].as<double>(),
                          row[2].as<std::uint64_t>());
    }
    return answer;
  }

  std::unique_ptr<pqxx::connection> connection_;
};

TEST_F(SameBest, AsSqlite) {
  SplitMix64 random(30);
  {
    const auto store = OpenStore();
    for (std::uint64_t batch = 1; batch <= 200; ++batch) {
      const std::size_t number = random.Below(programs.size());
      const Program& program = programs[number];
      const JobSpec spec = program.Spec(random.Below(2) == 0);
      const auto tree =
          static_cast<std::uint8_t>(100 + 10 * number + random.Below(kTreesOfProgram));
      Outcome outcome = Measured(
          batch, spec, tree,
          1'000.0 + static_cast<double>(random.Below(500)) + static_cast<double>(batch) / 1e3,
          random.Below(2) == 0 ? "a best class" : "another best class");
      auto& measurement = std::get<Measurement>(outcome.evaluation.verdict);
      measurement.grade = static_cast<Grade>(random.Below(4));
      outcome.evaluation.conditions->threads = 1 + static_cast<std::uint32_t>(random.Below(2));
      outcome.evaluation.same_code = random.Below(8) == 0;
      const bool was_never_trusted = random.Below(4) == 0;  // its worker was in quarantine
      std::vector<Write> writes = {
          SomeBatch(batch, {spec}),
          JobFinished{.outcome = outcome, .program = program.key(), .in_doubt = was_never_trusted}};
      if (was_never_trusted || random.Below(5) == 0) {
        writes.push_back(
            ResultDoubted{.job = outcome.job,
                          .flagged_at = was_never_trusted ? outcome.finished_at : kThen,
                          .reason = "a test"});
      }
      ASSERT_TRUE(store->Apply(writes));
    }
  }
  CopyToPostgres(Uuid::Random());

  int found = 0;
  for (int i = 0; i < 600; ++i) {
    SCOPED_TRACE(i);
    BestQuery query{.program = random.Below(20) == 0
                                   ? SomeKey(1)
                                   : programs[random.Below(programs.size())].key(),
                    .threads = 1 + static_cast<std::uint32_t>(random.Below(3)),
                    .cache = random.Below(20) == 0 ? CacheState::kCold : CacheState::kWarm,
                    .max = 1 + random.Below(2 * kTreesOfProgram)};
    const auto which = random.Below(4);
    if (which != 0) query.hardware_class = which == 1 ? "another best class" : "a best class";
    const Answer here = Here(query);
    EXPECT_EQ(There(query), here);
    found += here.empty() ? 0 : 1;
  }
  EXPECT_GT(found, 300);
  EXPECT_LT(found, 500);
}

// A false figure of a ninth tree takes no place of the eight, and one of a tree that is there does
// not take its figure, whether the doubts come with the outcomes or before them.
TEST_F(SameBest, WhatWasNeverTrustedChangesNothing) {
  const Program program(24);
  const std::string hardware_class = "class of a quarantine";
  const JobSpec spec = program.Spec(false);
  {
    const auto store = OpenStore();
    std::uint64_t batch = 0;
    const auto measure = [&](std::uint8_t tree, double elapsed_ns, bool in_doubt) {
      const Outcome outcome = Measured(++batch, spec, tree, elapsed_ns, hardware_class);
      std::vector<Write> writes = {
          SomeBatch(batch, {spec}),
          JobFinished{.outcome = outcome, .program = program.key(), .in_doubt = in_doubt}};
      if (in_doubt) {
        writes.push_back(ResultDoubted{
            .job = outcome.job, .flagged_at = outcome.finished_at, .reason = "a test"});
      }
      ASSERT_TRUE(store->Apply(writes));
    };
    for (std::uint8_t i = 0; i < 12; ++i) measure(210 + i, 1'000.0 - i, false);
    for (std::uint8_t i = 0; i < 12; ++i) {
      measure(210 + i, 100.0 + i, true);
      if (i % 3 == 0) measure(230 + i, 200.0 + i, true);
    }
    measure(221, 900, false);
    measure(221, 90, true);
  }
  CopyToPostgres(Uuid::Random());
  const BestQuery query{.program = program.key(), .hardware_class = hardware_class, .max = 99};
  const Answer here = Here(query);
  EXPECT_EQ(here.size(), BestRows::kMostOfPlace);
  EXPECT_EQ(There(query), here);
}

TEST_F(SameBest, OfTwoCoordinatorsAndTwoTextsThereIsOne) {
  const Program program(20);
  const std::string hardware_class = "class of two coordinators";
  const auto copy = [&](const Outcome& outcome) {
    auto archive =
        PostgresArchive::Open({.url = url_, .incarnation = Uuid::Random(), .name = "a test"});
    ASSERT_TRUE(archive) << archive.error().message;
    ASSERT_TRUE((*archive)->Position());
    const FeedStep step{.outcomes = {outcome}, .after = {.last = outcome.job.batch}};
    const Status appended = (*archive)->Append({}, step, {});
    ASSERT_TRUE(appended) << appended.error().message;
  };
  const auto best = [&] {
    pqxx::nontransaction work(*connection_);
    const auto rows = work.exec_params(
        "SELECT batch, elapsed_ns FROM loopfleet.v_best WHERE hardware_class = $1", hardware_class);
    EXPECT_EQ(rows.size(), 1);
    return std::pair(rows[0][0].as<int>(), rows[0][1].as<double>());
  };
  copy(Measured(1, program.Spec(false), 150, 300, hardware_class));
  copy(Measured(2, program.Spec(true), 151, 200, hardware_class));
  EXPECT_EQ(best(), std::pair(2, 200.0));
  copy(Measured(3, program.Spec(false), 151, 250, hardware_class));  // the newest figure counts
  EXPECT_EQ(best(), std::pair(3, 250.0));
  for (std::uint8_t i = 0; i < 20; ++i) {
    copy(Measured(4 + i, program.Spec(i % 2 == 0), 160 + i, 1'000.0 + i, hardware_class));
  }
  EXPECT_EQ(best(), std::pair(3, 250.0));
  pqxx::nontransaction work(*connection_);
  EXPECT_EQ(work.exec_params1("SELECT count(*) FROM loopfleet.best WHERE hardware_class = $1 AND "
                              "elapsed_ns <= 1005",
                              hardware_class)[0]
                .as<int>(),
            8);
}

// Each of two mirrors sees what the other one entered and took out.
TEST_F(SameBest, TwoMirrorsAtATime) {
  const Program program(22);
  const std::string hardware_class = "class of two mirrors";
  struct Mirror {
    std::unique_ptr<PostgresArchive> archive;
    FeedPosition position;
  };
  std::vector<Mirror> mirrors;
  for (int i = 0; i < 2; ++i) {
    auto archive =
        PostgresArchive::Open({.url = url_, .incarnation = Uuid::Random(), .name = "a test"});
    ASSERT_TRUE(archive) << archive.error().message;
    ASSERT_TRUE((*archive)->Position());
    mirrors.push_back({.archive = *std::move(archive), .position = {}});
  }
  SplitMix64 random(22);
  std::map<SubjectKey, Outcome> expected;
  std::vector<Outcome> measured;
  int full = 0;
  for (std::uint64_t batch = 1; batch <= 200; ++batch) {
    SCOPED_TRACE(batch);
    Mirror& mirror = mirrors[random.Below(2)];
    FeedStep step{.after = {.last = {batch}}};
    std::vector<Doubt> doubts;
    if (random.Below(4) == 0 && !measured.empty()) {
      const Outcome& doubted = measured[measured.size() - 1 - random.Below(measured.size()) / 4];
      const SubjectKey& tree = *doubted.evaluation.subject;
      doubts.push_back({.number = static_cast<std::int64_t>(batch),
                        .subject = tree,
                        .worker = doubted.worker,
                        .measured_at = doubted.finished_at,
                        .reason = "a test"});
      if (expected.contains(tree) && expected.at(tree) == doubted) expected.erase(tree);
    } else {
      const auto tree = static_cast<std::uint8_t>(50 + random.Below(12));
      const double elapsed_ns = 1'000 + static_cast<double>(random.Below(500'000)) / 1e3;
      step.outcomes = {Measured(batch, program.Spec(false), tree, elapsed_ns, hardware_class)};
      measured.push_back(step.outcomes.front());
      expected.insert_or_assign(SomeKey(tree), step.outcomes.front());
      if (expected.size() > BestRows::kMostOfPlace) {
        ++full;
        const auto elapsed = [](const auto& entry) {
          return entry.second.evaluation.measurement().elapsed_ns;
        };
        expected.erase(std::ranges::max_element(expected, {}, elapsed));
      }
    }
    const Status appended = mirror.archive->Append(mirror.position, step, doubts);
    ASSERT_TRUE(appended) << appended.error().message;
    mirror.position = step.after;
    Answer sorted;
    for (const auto& [tree, outcome] : expected) {
      sorted.emplace_back(tree.ToString(), outcome.evaluation.measurement().elapsed_ns,
                          outcome.job.batch.value);
    }
    std::ranges::sort(sorted, {}, [](const auto& row) { return std::get<1>(row); });
    ASSERT_EQ(There({.program = program.key(), .hardware_class = hardware_class, .max = 99}),
              sorted);
  }
  EXPECT_GT(full, 20);
}

class HandClock final : public Clock {
 public:
  Instant Now() const override { return now_; }
  WallTime WallNow() const override { return {}; }
  void Advance(Nanos by) { now_ += by; }

 private:
  Instant now_{Nanos{1}};
};

// No mirror is told of it. Until then a figure enters only if it is quicker than what was there.
TEST_F(SameBest, WhatAnOperatorDeletesIsForgottenAfterAMinute) {
  const Program program(23);
  const std::string hardware_class = "class of an operator";
  ASSERT_TRUE(PostgresArchive::Open({.url = url_, .incarnation = Uuid::Random()}));  // the schema
  pqxx::connection connection(url_);
  HandClock clock;
  BestRows best(clock);
  std::uint8_t batch = 0;
  const auto note = [&](double elapsed_ns) {
    ++batch;
    pqxx::work work(connection);
    work.exec("SET search_path TO loopfleet");
    best.Note(work, 1,
              {Measured(batch, program.Spec(false), 200 + batch, elapsed_ns, hardware_class)});
    work.commit();
  };
  const auto batches = [&] {
    std::vector<std::uint64_t> found;
    for (const auto& [tree, elapsed_ns, of_batch] :
         There({.program = program.key(), .hardware_class = hardware_class, .max = 99})) {
      found.push_back(of_batch);
    }
    return found;
  };
  for (std::size_t i = 0; i < BestRows::kMostOfPlace; ++i) {
    note(100.0 + static_cast<double>(i));
  }
  ASSERT_EQ(batches().size(), BestRows::kMostOfPlace);
  pqxx::nontransaction(connection)
      .exec("DELETE FROM loopfleet.best WHERE hardware_class = '" + hardware_class + "'");
  clock.Advance(std::chrono::seconds(60));
  note(200);
  EXPECT_TRUE(batches().empty());
  clock.Advance(Nanos(1));
  note(201);
  EXPECT_EQ(batches(), std::vector<std::uint64_t>{batch});
}

// The statement of a migration that begins so.
std::string ViewOf(const std::string& migration, const std::string& begin) {
  std::ifstream file(LOOPFLEET_SOURCE_DIR "/storage/postgres/migrations/" + migration);
  const std::string sql(std::istreambuf_iterator<char>(file), {});
  const std::size_t start = sql.find(begin);
  LF_CHECK(start != std::string::npos, "{} has no {}", migration, begin);
  return sql.substr(start, sql.find(";\n", start) - start);
}

// As version 2 kept them, each text for itself.
TEST_F(SameBest, FormerRowsAreEntered) {
  const Program program(21);
  const std::string hardware_class = "a former class";
  const auto open = [&] {
    auto archive =
        PostgresArchive::Open({.url = url_, .incarnation = Uuid::Random(), .name = "a test"});
    LF_CHECK(archive.has_value(), "{}", archive.error().message);
    return *std::move(archive);
  };
  const auto archive = open();
  const std::vector<Outcome> outcomes = {Measured(1, program.Spec(false), 190, 300, hardware_class),
                                         Measured(2, program.Spec(true), 191, 200, hardware_class)};
  ASSERT_TRUE(archive->Position());
  ASSERT_TRUE(archive->Append({}, {.outcomes = outcomes, .after = {.last = {2}}}, {}));
  {
    pqxx::work work(*connection_);
    work.exec("SET LOCAL search_path TO loopfleet");
    work.exec(
        "CREATE TABLE former AS SELECT md5(o.benchmark)::uuid AS benchmark_key, b.hardware_class, "
        "b.threads, b.cache, coordinator, batch, sequence, finished_at, o.elapsed_high_ns "
        "FROM best b JOIN outcomes o USING (coordinator, batch, sequence, finished_at)");
    work.exec("DROP VIEW v_best; DROP TABLE best; ALTER TABLE former RENAME TO best");
    work.exec(
        "DROP VIEW v_results; ALTER TABLE outcomes DROP COLUMN figure_tree_key, "
        "DROP COLUMN figure_worker, DROP COLUMN figure_measured_at, DROP COLUMN samples_before, "
        "DROP COLUMN accepted_before");
    work.exec(ViewOf("0001_initial.sql", "CREATE VIEW v_best"));
    work.exec(ViewOf("0002_shared_results.sql", "CREATE OR REPLACE VIEW v_results"));
    work.exec(
        "CREATE VIEW mine AS SELECT benchmark, elapsed_ns FROM v_best; "  // of a user
        "UPDATE schema_version SET version = 2");
    work.commit();
  }
  open();
  const BestQuery query{.program = program.key(), .hardware_class = hardware_class, .max = 8};
  const Answer entered = {{SomeKey(191).ToString(), 200, 2}, {SomeKey(190).ToString(), 300, 1}};
  EXPECT_EQ(There(query), entered);
  pqxx::nontransaction work(*connection_);
  EXPECT_TRUE(work.exec1("SELECT to_regclass('loopfleet.former_best')")[0].is_null());
  EXPECT_EQ(work.exec1("SELECT count(*) FROM loopfleet.mine WHERE elapsed_ns = 200")[0].as<int>(),
            1);
  work.exec0("DROP VIEW loopfleet.mine");
}

}  // namespace
}  // namespace loopfleet::storage
