// A damaged row is detected before it is used.

#include <fstream>
#include <iterator>

#include "storage/thinning.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

class CorruptionTest : public ScratchDatabase {
 protected:
  // Batch 1: job 0 measured, job 1 failed, job 2 not finished.
  void SetUp() override {
    spec_.tag = "a tag to be found in the file";
    accepted_ = SomeBatch(1, {spec_, FullSpec(), spec_});
    const std::vector<Write> group = {
        accepted_, JobFinished{SomeOutcome({.index = 0, .sequence = 1}, spec_, SomeMeasurement(1))},
        JobFinished{SomeOutcome({.index = 1, .sequence = 2}, FullSpec(),
                                SomeFailure(FailureCode::kRunCrash))}};
    ASSERT_TRUE(OpenStore()->Apply(group));
  }

  // Changes the value, but not its type or the checksum. CHECK constraints are off.
  void Damage(const std::string& table, const std::string& column, const std::string& where) {
    RunByHand("PRAGMA ignore_check_constraints = ON; UPDATE " + table + " SET " + column +
              " = CASE typeof(" + column + ") WHEN 'integer' THEN " + column +
              " + 1 WHEN 'real' THEN " + column + " * 2 WHEN 'text' THEN " + column +
              " || 'x' ELSE CAST(substr(" + column + ", 2) || x'41' AS BLOB) END WHERE " + where);
  }

  std::vector<std::string> ColumnsOf(const std::string& table) {
    const auto connection = OpenByHand();
    auto query = connection->Start("SELECT name FROM pragma_table_info(?)").value();
    query.Add(table);
    std::vector<std::string> names;
    while (query.Next().value()) names.emplace_back(query.Text());
    return names;
  }

  // Damages each column in turn, except those that the row is found by, and calls `look`.
  template <class Look>
  void ForEachColumn(const std::string& table, const std::vector<std::string>& keys,
                     const std::string& where, Look look) {
    const auto kept = directory() / "kept.db";
    std::filesystem::copy_file(path(), kept);
    int looked = 0;
    for (const std::string& column : ColumnsOf(table)) {
      if (std::find(keys.begin(), keys.end(), column) != keys.end()) continue;
      SCOPED_TRACE(table + "." + column);
      if (OpenByHand()
              ->Number(("SELECT count(*) FROM " + table + " WHERE " + where + " AND " + column +
                        " IS NOT NULL")
                           .c_str())
              .value() == 0) {
        continue;
      }
      Damage(table, column, where);
      look(*OpenReader());
      ++looked;
      std::filesystem::copy_file(kept, path(), std::filesystem::copy_options::overwrite_existing);
    }
    std::filesystem::remove(kept);
    EXPECT_GT(looked, 2);
  }

  template <class T>
  static void ExpectCorrupt(const Result<T>& result, std::string_view text) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::kCorrupt) << result.error().message;
    EXPECT_NE(result.error().message.find(text), std::string::npos) << result.error().message;
  }

  static constexpr WallTime kFlaggedAt{std::chrono::hours(480'000)};

  JobSpec spec_ = PlainSpec(4);
  JobsAccepted accepted_;
};

TEST_F(CorruptionTest, EveryColumnOfJobs) {
  ForEachColumn("jobs", {"batch", "idx"}, "idx = 1", [](StoreReader& reader) {
    ExpectCorrupt(reader.ReadJob({{1}, 1}), "row 1.1 of table jobs");
    const auto outcomes = reader.ReadOutcomes({1}, 0, {.max_rows = 10}).value();
    ASSERT_EQ(outcomes.size(), 2u);
    EXPECT_TRUE(outcomes[0].evaluation.ok());
    ASSERT_FALSE(outcomes[1].evaluation.ok());
    EXPECT_EQ(outcomes[1].evaluation.failure().code, FailureCode::kStorageCorrupt);
    EXPECT_NE(outcomes[1].evaluation.failure().message.find("1.1 of table jobs"),
              std::string::npos);
    EXPECT_EQ(reader.TakeDamagedCount(), 1u);
    EXPECT_EQ(reader.TakeDamagedCount(), 0u);
  });
}

TEST_F(CorruptionTest, EveryColumnOfResults) {
  ForEachColumn("results", {"id"}, "id = 1", [](StoreReader& reader) {
    const auto found = reader.FindResult(KeyFor(SomeMeasurement(1)));
    // A row with a damaged key may not be found at all; it never answers.
    if (found)
      EXPECT_FALSE(*found);
    else
      ExpectCorrupt(found, "row 1 of table results");
    const auto outcomes = reader.ReadOutcomes({1}, 0, {.max_rows = 10}).value();
    ASSERT_EQ(outcomes.size(), 2u);
    ASSERT_FALSE(outcomes[0].evaluation.ok());
    EXPECT_EQ(outcomes[0].evaluation.failure().code, FailureCode::kStorageCorrupt);
    EXPECT_FALSE(outcomes[1].evaluation.ok());
    EXPECT_EQ(outcomes[1].evaluation.failure().code, FailureCode::kRunCrash);
  });
}

// Batch 2 repeats what batch 1 measured, batch 3 what another coordinator did.
TEST_F(CorruptionTest, ADamagedFigureIsNotNamed) {
  {
    Evaluation copy = SomeMeasurement(1);
    copy.subject = SomeKey(2);
    copy.same_code = true;
    const auto foreign = std::make_shared<const StoredResult>(
        StoredResult{.evaluation = SomeMeasurement(3),
                     .worker = "far away",
                     .elsewhere = Elsewhere{.coordinator = Uuid::Random(), .job = {{7}, 8}}});
    ASSERT_TRUE(OpenStore()->Apply(std::vector<Write>{
        SomeBatch(2, {spec_}), SomeBatch(3, {spec_}),
        JobFinished{SomeOutcome({.batch = 2}, spec_, copy)},
        JobsAnswered{.jobs = {{.job = {{3}, 0}, .sequence = 1, .answer = foreign}}}}));
  }
  EXPECT_EQ(OpenReader()->RepeatedFigure({{2}, 1}).value()->subject, SomeKey(1));
  EXPECT_EQ(OpenReader()->RepeatedFigure({{3}, 1}).value()->worker, "far away");
  ForEachColumn("results", {"id"}, "id = 1", [](StoreReader& reader) {
    EXPECT_EQ(reader.RepeatedFigure({{2}, 1}).value(), std::nullopt);
  });
  ForEachColumn("foreign_results", {"result"}, "result = 3", [](StoreReader& reader) {
    EXPECT_EQ(reader.RepeatedFigure({{3}, 1}).value(), std::nullopt);
  });
  Damage("copied_results", "original", "result = 2");
  EXPECT_EQ(OpenReader()->RepeatedFigure({{2}, 1}).value(), std::nullopt);
}

// Result 1 was measured here, 2 by another coordinator; both are in doubt, and so is 3.
TEST_F(CorruptionTest, ADoubtAboutADamagedFigureHidesNoOther) {
  {
    const auto foreign = std::make_shared<const StoredResult>(
        StoredResult{.evaluation = SomeMeasurement(2),
                     .worker = "far away",
                     .elsewhere = Elsewhere{.coordinator = Uuid::Random(), .job = {{7}, 8}}});
    std::vector<Write> writes{
        SomeBatch(2, {spec_}), SomeBatch(3, {spec_}),
        JobsAnswered{.jobs = {{.job = {{2}, 0}, .sequence = 1, .answer = foreign}}},
        JobFinished{SomeOutcome({.batch = 3}, spec_, SomeMeasurement(3))}};
    for (const std::uint64_t batch : {1, 2, 3}) {
      writes.emplace_back(
          ResultDoubted{.job = {{batch}, 0}, .flagged_at = kFlaggedAt, .reason = "an audit"});
    }
    ASSERT_TRUE(OpenStore()->Apply(writes));
  }
  const auto expect = [](const std::vector<Doubt>& doubts,
                         const std::vector<std::uint8_t>& subjects) {
    ASSERT_EQ(doubts.size(), subjects.size());
    for (std::size_t i = 0; i < doubts.size(); ++i) {
      EXPECT_EQ(doubts[i].subject, SomeKey(subjects[i]));
      EXPECT_EQ(doubts[i].reason, "an audit");
      EXPECT_EQ(doubts[i].flagged_at, kFlaggedAt);
    }
  };
  expect(OpenReader()->ListDoubts(0, 9).value(), {1, 2, 3});
  ForEachColumn("results", {"id"}, "id = 1", [&](StoreReader& reader) {
    expect(reader.ListDoubts(0, 9).value(), {2, 3});
    expect(reader.ListDoubts(0, 1).value(), {2});  // not an empty page, which would be the last
  });
  ForEachColumn("foreign_results", {"result"}, "result = 2",
                [&](StoreReader& reader) { expect(reader.ListDoubts(0, 9).value(), {1, 3}); });
  ForEachColumn("suspect_results", {"result"}, "result = 2", [&](StoreReader& reader) {
    auto doubts = reader.ListDoubts(0, 9).value();
    ASSERT_EQ(doubts.size(), 3u);
    EXPECT_EQ(doubts[1].subject, SomeKey(2)) << "it is still in doubt";
    EXPECT_EQ(doubts[1].worker, "far away");
    EXPECT_EQ(doubts[1].flagged_at, doubts[1].measured_at);
    EXPECT_EQ(doubts[1].reason, "row 2 of table suspect_results is damaged");
    doubts.erase(doubts.begin() + 1);
    expect(doubts, {1, 3});
  });
}

// Rows that retention rewrites have checksums, too.
TEST_F(CorruptionTest, EveryColumnOfAThinnedResult) {
  {
    const auto store = OpenStore();
    Thinning pass({.measured_before = WallTime(std::chrono::days(30'000)), .keep_every = 3},
                  Thinning::Scope::kAll);
    while (!pass.is_over()) ASSERT_TRUE(store->Thin(pass, WallTime(std::chrono::days(30'000))));
    ASSERT_EQ(pass.count().results, 1u);
  }
  ForEachColumn("results", {"id"}, "id = 1", [](StoreReader& reader) {
    const auto outcomes = reader.ReadOutcomes({1}, 0, {.max_rows = 10}).value();
    ASSERT_EQ(outcomes.size(), 2u);
    ASSERT_FALSE(outcomes[0].evaluation.ok());
    EXPECT_EQ(outcomes[0].evaluation.failure().code, FailureCode::kStorageCorrupt);
  });
  // A thinned row does not pass for a whole one without its thinning columns.
  RunByHand("UPDATE results SET thinned_by = NULL, samples_before = NULL, accepted_before = NULL");
  EXPECT_FALSE(OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 10}).value()[0].evaluation.ok());
}

// A damaged outcome fails alone, not the page that it is on.
TEST_F(CorruptionTest, EveryColumnOfOutcomes) {
  for (const std::uint32_t damaged : {0, 1}) {
    const std::string where = "idx = " + std::to_string(damaged);
    ForEachColumn("outcomes", {"batch", "sequence", "idx"}, where, [&](StoreReader& reader) {
      const auto page = reader.ReadOutcomes({1}, 0, {.max_rows = 10}).value();
      const auto list = reader.ListOutcomes({}, {.max_rows = 10}, "").value().outcomes;
      EXPECT_EQ(list, page);
      ASSERT_EQ(page.size(), 2u);
      const Outcome& bad = page[damaged];
      EXPECT_EQ(bad.job, (JobId{{1}, damaged}));
      EXPECT_EQ(bad.sequence, damaged + 1u);
      EXPECT_EQ(bad.benchmark, accepted_.jobs[damaged].source);
      ASSERT_FALSE(bad.evaluation.ok());
      EXPECT_EQ(bad.evaluation.failure().code, FailureCode::kStorageCorrupt);
      EXPECT_NE(bad.evaluation.failure().message.find("of table outcomes"), std::string::npos);
      const auto asked = reader.ReadJob({{1}, damaged}).value();
      ASSERT_TRUE(asked && asked->outcome);
      EXPECT_EQ(*asked->outcome, bad);
      const Outcome& good = page[1 - damaged];
      EXPECT_EQ(good.evaluation.ok(), damaged == 1);
      if (!good.evaluation.ok()) {
        EXPECT_EQ(good.evaluation.failure().code, FailureCode::kRunCrash);
      }
    });
  }
}

TEST_F(CorruptionTest, ADamagedFailureAnswersNothing) {
  const StoreReader::FailureQuery question{
      .key = KeyFor(SomeFailure(FailureCode::kRunCrash)),
      .candidates = [] { return std::vector{Witness{.worker = "worker-1", .host = "host-1"}}; }};
  ASSERT_TRUE(OpenReader()->FindFailure(question).value());
  Damage("outcomes", "failure_message", "idx = 1");
  const auto reader = OpenReader();
  EXPECT_FALSE(reader->FindFailure(question).value());
  EXPECT_EQ(reader->TakeDamagedCount(), 1u);
}

// Where to begin to flag is searched by the times of rows.
TEST_F(CorruptionTest, ADamagedTimeDoesNotCutADoubtShort) {
  const auto timeout = [](std::uint8_t tree) {
    Evaluation made = SomeFailure(FailureCode::kRunTimeout);
    made.subject = SomeKey(tree);
    return made;
  };
  const auto finished = [&](std::uint32_t index, const Evaluation& evaluation) {
    return JobFinished{
        SomeOutcome({.batch = 2, .index = index, .sequence = index + 1}, spec_, evaluation)};
  };
  const JobFinished first = finished(0, SomeMeasurement(2));
  ASSERT_TRUE(OpenStore()->Apply(
      std::vector<Write>{SomeBatch(2, {spec_, spec_, spec_, spec_}), first, finished(1, timeout(3)),
                         finished(2, SomeMeasurement(4)), finished(3, timeout(5))}));
  RunByHand(
      "UPDATE results SET measured_at = 1 WHERE id = (SELECT max(id) FROM results);"
      "UPDATE known_failures SET failed_at = 1 WHERE id = (SELECT max(id) FROM known_failures)");
  ASSERT_TRUE(OpenStore()->Apply(
      std::vector<Write>{ResultsSuspected{.worker = first.outcome.worker,
                                          .since = first.outcome.finished_at,
                                          .flagged_at = first.outcome.finished_at,
                                          .reason = "it drifted"}}));
  const auto reader = OpenReader();
  EXPECT_FALSE(reader->FindResult(KeyFor(SomeMeasurement(2))).value());
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM known_failures WHERE failed_at > 1"), 0);
}

TEST_F(CorruptionTest, AnOutcomesOwnPlace) {
  RunByHand("UPDATE outcomes SET sequence = 7 WHERE idx = 1");
  ExpectCorrupt(OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 10}), "of table outcomes");
  RunByHand("DELETE FROM outcomes WHERE idx = 0; UPDATE outcomes SET sequence = 2");
  ExpectCorrupt(OpenReader()->ReadOutcomes({1}, 0, {.max_rows = 10}), "of table outcomes");
}

TEST_F(CorruptionTest, EveryColumnOfBatchesAndRequests) {
  ForEachColumn("batches", {"id"}, "id = 1", [](StoreReader& reader) {
    ExpectCorrupt(reader.FindBatch({1}), "row 1 of table batches");
  });
  ForEachColumn("requests", {"client", "request_id"}, "batch = 1", [this](StoreReader& reader) {
    ExpectCorrupt(reader.FindRequest(accepted_.client, accepted_.request_id), "of table requests");
  });
}

TEST_F(CorruptionTest, EveryColumnOfTheConditions) {
  for (const std::string table : {"hardware", "compilers", "conditions"}) {
    ForEachColumn(table, {"id"}, "id = 1", [&](StoreReader& reader) {
      const auto outcomes = reader.ReadOutcomes({1}, 0, {.max_rows = 10}).value();
      ASSERT_EQ(outcomes.size(), 2u);
      for (const Outcome& outcome : outcomes) {
        ASSERT_FALSE(outcome.evaluation.ok());
        EXPECT_EQ(outcome.evaluation.failure().code, FailureCode::kStorageCorrupt);
      }
    });
  }
}

TEST_F(CorruptionTest, ADamagedJobDoesNotKeepTheCoordinatorFromStarting) {
  Damage("jobs", "actions", "idx = 2");
  const Recovery recovery = OpenStore()->Recover().value();
  EXPECT_TRUE(recovery.jobs.empty());
  EXPECT_EQ(recovery.damaged, (std::vector<JobId>{{{1}, 2}}));
}

// Whichever column is damaged, the batch is rebuilt from its requests, jobs and outcomes.
TEST_F(CorruptionTest, ADamagedBatchIsRebuiltAtTheStart) {
  ASSERT_TRUE(OpenStore()->Apply(std::vector<Write>{SomeBatch(2, {spec_})}));
  const StoredBatch before = OpenReader()->FindBatch({1}).value().value();
  // (With `finished` + 1 the batch would be over: see the next test.)
  ForEachColumn("batches", {"id", "finished"}, "id = 1", [&](StoreReader& reader) {
    const auto list = reader.ListBatches(10).value();
    ASSERT_EQ(list.size(), 1u) << "the sound one";
    EXPECT_EQ(list[0].batch, BatchId{2});
    EXPECT_EQ(reader.NewestBatch().value().value().batch, BatchId{2});
    const auto store = OpenStore();
    const Recovery recovery = store->Recover().value();
    EXPECT_EQ(recovery.damaged_batches, 1u);
    ASSERT_EQ(recovery.unfinished.size(), 2u);
    const StoredBatch& batch = recovery.unfinished[0];
    EXPECT_EQ(batch.batch, BatchId{1});
    EXPECT_EQ(batch.client, before.client);
    EXPECT_EQ(batch.accepted_at, before.accepted_at);
    EXPECT_TRUE(batch.closed);
    EXPECT_FALSE(batch.cancelled);
    EXPECT_EQ(batch.job_count, 3u);
    EXPECT_EQ(batch.finished, 2u);
    EXPECT_EQ(batch.failed, 1u);
    EXPECT_EQ(batch.from_store, 0u);
    ASSERT_EQ(recovery.jobs.size(), 2u);
    EXPECT_EQ(recovery.jobs[0].job, (JobId{{1}, 2}));
    EXPECT_TRUE(recovery.damaged.empty());
    EXPECT_TRUE(reader.FindBatch({1})) << "everybody reads the new row";
  });
}

TEST_F(CorruptionTest, ACancelledBatchIsRebuiltAsOneOnceAJobOfItWasCancelled) {
  ASSERT_TRUE(OpenStore()->Apply(std::vector<Write>{
      SomeBatch(2, {spec_, spec_}), BatchCancelled{{2}},
      JobFinished{SomeOutcome({.batch = 2}, spec_, BareFailure(FailureCode::kCancelled))}}));
  Damage("batches", "cancelled", "id = 2");
  const Recovery recovery = OpenStore()->Recover().value();
  ASSERT_EQ(recovery.unfinished.size(), 2u);
  EXPECT_FALSE(recovery.unfinished[0].cancelled);
  EXPECT_EQ(recovery.unfinished[1].batch, BatchId{2});
  EXPECT_TRUE(recovery.unfinished[1].cancelled);
}

TEST_F(CorruptionTest, ADamagedCountIsNotBuiltUpon) {
  Damage("batches", "finished", "id = 1");
  const std::vector<Write> group = {
      JobFinished{SomeOutcome({.index = 2, .sequence = 3}, spec_, SomeMeasurement(1))}};
  const auto store = OpenStore();
  EXPECT_EQ(store->Recover().value().damaged_batches, 0u) << "it does not look unfinished";
  ASSERT_TRUE(store->Apply(group)) << "its outcomes say that 2 were finished";
  EXPECT_EQ(store->TakeDamagedCount(), 1u);
  EXPECT_EQ(store->TakeDamagedCount(), 0u);
  const StoredBatch batch = OpenReader()->FindBatch({1}).value().value();
  EXPECT_EQ(batch.finished, 3u);
  EXPECT_EQ(batch.failed, 1u);
  EXPECT_TRUE(batch.closed);
}

TEST_F(CorruptionTest, ABatchThatIsDamagedWhileItIsOpenTakesMoreJobs) {
  JobsAccepted open = SomeBatch(2, {spec_});
  open.closes_batch = false;
  const auto store = OpenStore();
  ASSERT_TRUE(store->Apply(std::vector<Write>{open}));
  Damage("batches", "accepted_at", "id = 2");
  JobsAccepted more = SomeBatch(2, {spec_, spec_});
  more.request_id.bytes[0] ^= 1;
  more.new_batch = false;
  more.first_index = 1;
  ASSERT_TRUE(store->Apply(std::vector<Write>{more}));
  EXPECT_EQ(OpenReader()->FindBatch({2}).value().value().job_count, 3u);
}

// A job of it finishes first, which does not tell whether the client has more.
TEST_F(CorruptionTest, ABatchThatIsRebuiltWhenAJobFinishesTakesMoreJobsUntilItIsClosed) {
  const auto more = [&](std::uint64_t batch, std::uint32_t first_index) {
    JobsAccepted accepted = SomeBatch(batch, {spec_});
    accepted.request_id.bytes[0] ^= static_cast<std::uint8_t>(first_index);
    accepted.new_batch = first_index == 0;
    accepted.closes_batch = false;
    accepted.first_index = first_index;
    return accepted;
  };
  const auto store = OpenStore();
  for (const std::uint64_t batch : {2, 3}) {
    ASSERT_TRUE(store->Apply(std::vector<Write>{more(batch, 0)}));
  }
  Damage("batches", "accepted_at", "id IN (2, 3)");
  Pruning pass({.asked_by = "a test"});
  ASSERT_TRUE(store->Prune(pass, WallTime{}));  // the writer reads the batches again
  for (const std::uint64_t batch : {2, 3}) {
    ASSERT_TRUE(store->Apply(
        std::vector<Write>{JobFinished{SomeOutcome({.batch = batch}, spec_, SomeMeasurement(2))}}));
    EXPECT_TRUE(OpenReader()->FindBatch({batch}).value()->closed);
  }
  const JobFinished unknown{
      SomeOutcome({.batch = 2, .index = 7, .sequence = 2}, spec_, SomeMeasurement(2))};
  EXPECT_FALSE(store->Apply(std::vector<Write>{more(2, 1), unknown})) << "rolled back";
  ASSERT_TRUE(store->Apply(std::vector<Write>{more(2, 1)}));
  ASSERT_TRUE(store->Apply(std::vector<Write>{more(2, 2)}));
  EXPECT_FALSE(OpenReader()->FindBatch({2}).value()->closed);
  EXPECT_EQ(OpenReader()->FindBatch({2}).value()->job_count, 3u);
  ASSERT_TRUE(store->Apply(std::vector<Write>{BatchClosed{.batch = {3}}}));
  EXPECT_FALSE(store->Apply(std::vector<Write>{more(3, 1)}));
}

// Its client is unknown: this batch alone is skipped, and reading it fails.
TEST_F(CorruptionTest, ABatchThatCannotBeRebuiltKeepsNoOtherFromItsJobs) {
  ASSERT_TRUE(OpenStore()->Apply(std::vector<Write>{SomeBatch(2, {spec_})}));
  Damage("batches", "accepted_at", "id = 1");
  Damage("requests", "digest", "batch = 1");
  const Recovery recovery = OpenStore()->Recover().value();
  EXPECT_EQ(recovery.damaged_batches, 1u);
  ASSERT_EQ(recovery.unfinished.size(), 1u);
  EXPECT_EQ(recovery.unfinished[0].batch, BatchId{2});
  ASSERT_EQ(recovery.jobs.size(), 1u);
  EXPECT_EQ(recovery.jobs[0].job, (JobId{{2}, 0}));
  ExpectCorrupt(OpenReader()->FindBatch({1}), "row 1 of table batches");
}

TEST_F(CorruptionTest, OneBitInTheFile) {
  std::string bytes;
  {
    std::ifstream file(path(), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const std::size_t place = bytes.find(spec_.tag);
  ASSERT_NE(place, std::string::npos);
  bytes[place] ^= 1;
  std::ofstream(path(), std::ios::binary) << bytes;

  const auto reader = OpenReader();
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM pragma_integrity_check "
                         "WHERE integrity_check <> 'ok'"),
            0)
      << "SQLite itself does not see it";
  const bool first = !reader->ReadJob({{1}, 0});
  const bool third = !reader->ReadJob({{1}, 2});
  EXPECT_NE(first, third);
}

}  // namespace
}  // namespace loopfleet::storage
