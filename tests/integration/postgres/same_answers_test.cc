// PostgreSQL answers a look-up as SQLite does: random figures in both, random questions to both.
// Runs under with_server.py, which starts the server.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "storage/outcome_feed.h"
#include "storage/postgres/archive.h"
#include "storage/postgres/shared_results.h"
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
      const FeedStep step = NextOutcomes(*reader, position.outcomes, 64).value();
      const auto doubts = reader->ListDoubts(position.doubt, 8).value();
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

}  // namespace
}  // namespace loopfleet::storage
