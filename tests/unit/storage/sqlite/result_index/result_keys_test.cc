// The newest result is found, in memory and in runs, and no result is lost between the two.

#include "storage/sqlite/result_index/result_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <stop_token>
#include <thread>

#include "storage/sqlite/tables/result_table.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

constexpr std::size_t kRunEntries = 300;  // more than one chunk

class ResultKeysTest : public ScratchDatabase {
 protected:
  static Evaluation Measured(std::uint32_t tree, double elapsed_ns) {
    Evaluation evaluation = SomeMeasurement(0);
    std::memcpy(evaluation.subject->bytes.data(), &tree, sizeof tree);
    std::get<Measurement>(evaluation.verdict).elapsed_ns = elapsed_ns;
    evaluation.code_hash.clear();  // one entry for each result
    return evaluation;
  }
  static Evaluation MeasuredWithCode(std::uint32_t tree) {
    Evaluation evaluation = Measured(tree, 1);
    evaluation.code_hash = fmt::format("code {}", tree);
    return evaluation;
  }
  static bool CodeIsFound(StoreReader& reader, std::uint32_t tree) {
    const Evaluation measured = MeasuredWithCode(tree);
    const StoredAnswer found =
        *reader.FindSameCode(measured.code_hash, SomeKey(50), KeyFor(Measured(0, 1)));
    return found != nullptr && found->evaluation.subject == measured.subject;
  }

  // Stores one measurement for each element, in a new batch.
  void Add(Store& store, const std::vector<Evaluation>& evaluations) {
    const auto n = static_cast<std::uint32_t>(evaluations.size());
    std::vector<Write> writes = {SomeBatch(++batch_, std::vector<JobSpec>(n, PlainSpec(2)))};
    for (std::uint32_t i = 0; i < n; ++i) {
      writes.push_back(
          JobFinished{.outcome = SomeOutcome({.batch = batch_, .index = i, .sequence = i + 1},
                                             PlainSpec(2), evaluations[i]),
                      .program = SomeKey(50)});
    }
    const Status applied = store.Apply(writes);
    ASSERT_TRUE(applied) << applied.error().message;
  }

  static double ElapsedOf(StoreReader& reader, std::uint32_t tree) {
    const auto found = reader.FindResult(KeyFor(Measured(tree, 1))).value();
    return found ? found->evaluation.measurement().elapsed_ns : 0;
  }

  static Evaluation MeasuredWith(double spread) {
    Evaluation evaluation = Measured(1, 1);
    std::get<Measurement>(evaluation.verdict).spread = spread;
    return evaluation;
  }
  static ResultKey KeyOf(double precision) {
    ResultKey key = KeyFor(Measured(1, 1));
    key.precision = precision;
    return key;
  }

  // Gives every run this filter.
  void WriteFilters(const RunFilter& filter) {
    const auto connection = OpenByHand();
    std::vector<std::vector<std::int64_t>> runs;
    std::vector<std::vector<std::uint8_t>> directories;
    {
      Query row = connection->Start("SELECT * FROM result_key_runs").value();
      while (row.Next().value()) {
        runs.push_back({row.Int64(), row.Int64(), row.Int64()});
        row.Skip();
        const auto directory = row.Blob();
        directories.emplace_back(directory.begin(), directory.end());
      }
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Query query = connection->Start("REPLACE INTO result_key_runs VALUES (?,?,?,?,?,?)").value();
      for (const std::int64_t number : runs[i]) query.Add(number);
      ASSERT_TRUE(query
                      .Add(std::span(reinterpret_cast<const std::uint8_t*>(filter.data()),
                                     filter.size() * sizeof filter[0]))
                      .Add(std::span<const std::uint8_t>(directories[i]))
                      .AddChecksum()
                      .Run());
    }
  }

  std::uint64_t batch_ = 0;
};

TEST_F(ResultKeysTest, TheNewestIsFoundInMemoryAndInRuns) {
  const StoreOptions options{.run_entries = kRunEntries};
  auto store = OpenStore(options);
  const auto shared = store->OpenReader().value();
  const auto alone = OpenReader();
  constexpr std::uint32_t kTrees = 500;
  for (int round = 1; round <= 4; ++round) {
    std::vector<Evaluation> evaluations;
    for (std::uint32_t tree = 0; tree < kTrees; ++tree) {
      if (tree % static_cast<std::uint32_t>(round) == 0) {
        evaluations.push_back(Measured(tree, round));
      }
    }
    Add(*store, evaluations);
    for (std::uint32_t tree = 0; tree < kTrees; ++tree) {
      const int expected = tree % 12 == 0                ? round
                           : round >= 4 && tree % 4 == 0 ? 4
                           : round >= 3 && tree % 3 == 0 ? 3
                           : round >= 2 && tree % 2 == 0 ? 2
                                                         : 1;
      ASSERT_EQ(ElapsedOf(*shared, tree), expected) << "tree " << tree << " round " << round;
      ASSERT_EQ(ElapsedOf(*alone, tree), expected) << "tree " << tree << " round " << round;
    }
    EXPECT_EQ(ElapsedOf(*shared, kTrees), 0);
  }
  EXPECT_GE(NumberByHand("SELECT count(*) FROM result_key_runs"), 2);
  store.reset();
  store = OpenStore(options);  // and a restart finds them again
  const auto again = SqliteReader::Open(path(), store->result_keys()).value();
  for (std::uint32_t tree = 0; tree < kTrees; tree += 12) ASSERT_EQ(ElapsedOf(*again, tree), 4);
}

// Tree 0 is measured in each round, tree 1000 + n in round n alone: each round fills a run.
class MergedRunsTest : public ResultKeysTest {
 protected:
  static constexpr std::uint32_t kTrees = 16;
  static constexpr StoreOptions kOptions{.run_entries = kTrees};

  void AddRounds(Store& store, std::uint32_t rounds) {
    for (; rounds > 0; --rounds) {
      std::vector<Evaluation> evaluations = {Measured(0, 1), Measured(1000 + rounds_++, 1)};
      for (std::uint32_t i = 2; i < kTrees; ++i) evaluations.push_back(Measured(100'000 + i, 1));
      Add(store, evaluations);
    }
  }

  static std::vector<ResultId> IdsOf(const ResultKeys& keys, Connection& connection,
                                     std::uint32_t tree, std::size_t max) {
    return keys.Find(connection, HashOf(KeyFor(Measured(tree, 1))), max).value();
  }

  void ExpectAll(const ResultKeys& keys) {
    const auto connection = OpenByHand();
    const auto newest = IdsOf(keys, *connection, 0, 20);
    ASSERT_EQ(newest.size(), std::min(rounds_, 20u));
    for (std::uint32_t i = 0; i < newest.size(); ++i) {
      EXPECT_EQ(newest[i], std::int64_t{(rounds_ - 1 - i) * kTrees + 1});
    }
    EXPECT_EQ(IdsOf(keys, *connection, 0, 10'000).size(), rounds_);
    for (std::uint32_t round = 0; round < rounds_; ++round) {
      EXPECT_EQ(IdsOf(keys, *connection, 1000 + round, 64),
                std::vector<ResultId>{round * kTrees + 2})
          << round;
    }
    EXPECT_TRUE(IdsOf(keys, *connection, 999, 64).empty());
  }

  // Until nothing is left to merge or to remove.
  static void Settle(Store& store) {
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(store.Apply(std::vector<Write>{}));
  }

  std::int64_t Whole(std::size_t level) {
    return NumberByHand(
        fmt::format("SELECT count(*) FROM merged_runs WHERE first_part >> 32 = {}", level).c_str());
  }
  std::int64_t LiveChunks() { return NumberByHand("SELECT count(*) FROM result_key_chunks"); }

  std::uint32_t rounds_ = 0;
};

TEST_F(MergedRunsTest, SixteenRunsBecomeOneAtEveryLevel) {
  auto store = OpenStore(kOptions);
  AddRounds(*store, 30);
  ExpectAll(*store->result_keys());
  AddRounds(*store, 2 * 256 + 2 * 16 + 5 - 30);
  ExpectAll(*store->result_keys());
  Settle(*store);
  ExpectAll(*store->result_keys());
  EXPECT_EQ(Whole(2), 2);
  EXPECT_EQ(Whole(1), 2);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM result_key_runs WHERE run < 1 << 32"), 5);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM retired_runs"), 0);
  EXPECT_EQ(LiveChunks(), NumberByHand("SELECT count(*) FROM result_key_runs"))
      << "those of merged runs are removed; a part has one here";
  store.reset();
  store = OpenStore(kOptions);
  ExpectAll(*store->result_keys());
  EXPECT_EQ(ElapsedOf(*OpenReader(), 1000), 1);
}

// Whichever transaction fails or is the last of its program.
TEST_F(MergedRunsTest, AMergeGoesOnWhereItWasInterrupted) {
  auto store = OpenStore(kOptions);
  AddRounds(*store, 17);
  for (int turn = 0; turn < 40; ++turn) {
    if (turn % 3 == 0) {
      RunByHand("UPDATE writer SET epoch = epoch + 1");
      EXPECT_FALSE(store->Apply(std::vector<Write>{}));
      RunByHand("UPDATE writer SET epoch = epoch - 1");
    } else if (turn % 3 == 1) {
      store.reset();
      store = OpenStore(kOptions);
    }
    ExpectAll(*store->result_keys());
    ASSERT_TRUE(store->Apply(std::vector<Write>{}));
  }
  Settle(*store);
  EXPECT_EQ(Whole(1), 1);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM result_key_runs"), 16 + 1);
  EXPECT_EQ(LiveChunks(), 16 + 1);
  ExpectAll(*store->result_keys());
}

// Also with keys of its own, which may be older than the last merge.
TEST_F(MergedRunsTest, ALookUpGoesOnWhileRunsAreMergedAndRemoved) {
  const auto store = OpenStore(kOptions);
  AddRounds(*store, 20);
  const auto look_up = [](StoreReader& reader, std::stop_token stop, std::atomic<int>& found) {
    while (!stop.stop_requested()) {
      for (std::uint32_t round = 0; round < 20; ++round) {
        ASSERT_EQ(ElapsedOf(reader, 1000 + round), 1) << round;
        ++found;
      }
    }
  };
  std::atomic<int> found = 0;
  const auto shared = store->OpenReader().value();
  const auto alone = OpenReader();
  {
    const std::jthread one([&](std::stop_token stop) { look_up(*shared, stop, found); });
    const std::jthread other([&](std::stop_token stop) { look_up(*alone, stop, found); });
    AddRounds(*store, 300);
    Settle(*store);
  }
  EXPECT_GT(found, 20);
  EXPECT_EQ(Whole(2), 1);
}

TEST_F(MergedRunsTest, ADamagedRunIsNotMergedAndResultsAreStillStored) {
  {
    const auto store = OpenStore(kOptions);
    AddRounds(*store, 10);
  }
  RunByHand("UPDATE result_key_chunks SET checksum = checksum + 1 WHERE id >> 16 = 3");
  const auto store = OpenStore(kOptions);
  AddRounds(*store, 30);
  Settle(*store);
  EXPECT_EQ(Whole(1), 0);
  const auto connection = OpenByHand();
  const auto keys = store->result_keys();
  EXPECT_EQ(IdsOf(*keys, *connection, 1000 + 30, 64).size(), 1u);
}

// What a merged run lost is read from the results again, and merged again.
TEST_F(MergedRunsTest, ADamagedMergedRunIsMadeAgain) {
  for (const char* damage :
       {"UPDATE result_key_runs SET checksum = checksum + 1 WHERE run = (1 << 32) + 20",
        "DELETE FROM result_key_runs WHERE run = (1 << 32) + 18",
        "UPDATE merged_runs SET checksum = checksum + 1 WHERE first_part = (1 << 32) + 17",
        "UPDATE merged_runs SET last_part = 0 WHERE first_part = (1 << 32) + 17",
        "INSERT INTO retired_runs VALUES (1, 7)"}) {
    SCOPED_TRACE(damage);
    auto store = OpenStore(kOptions);
    AddRounds(*store, 40);
    Settle(*store);
    ASSERT_GE(Whole(1), 2);
    store.reset();
    RunByHand(damage);
    store = OpenStore(kOptions);
    ExpectAll(*store->result_keys());
    AddRounds(*store, 20);
    Settle(*store);
    ExpectAll(*store->result_keys());
    EXPECT_EQ(LiveChunks(), NumberByHand("SELECT count(*) FROM result_key_runs"));
    store.reset();
    std::filesystem::remove(path());
    rounds_ = 0;
    batch_ = 0;
  }
}

// Versions before 13 had filters of 16 bits for each key.
TEST_F(ResultKeysTest, RunsOfAnEarlierVersionAreSearchedBesideNewOnes) {
  constexpr std::uint32_t kTrees = 21;  // in a run: two blocks of a filter
  const auto add_runs = [&](Store& store, std::uint32_t first, std::uint32_t runs) {
    for (std::uint32_t run = first; run < first + runs; ++run) {
      std::vector<Evaluation> evaluations;
      for (std::uint32_t i = 0; i < kTrees; ++i) {
        evaluations.push_back(Measured(run * kTrees + i, 1));
      }
      Add(store, evaluations);
    }
  };
  constexpr std::uint32_t kOld = 5;
  constexpr std::uint32_t kNew = 67;
  add_runs(*OpenStore({.run_entries = kTrees}), 0, kOld + 1);
  ASSERT_EQ(NumberByHand("SELECT count(*) FROM result_key_runs"), kOld);
  WriteFilters(RunFilter(8, ~std::uint64_t{0}));  // smaller; it denies nothing
  auto store = OpenStore({.run_entries = kTrees});
  add_runs(*store, kOld + 1, kNew);
  for (int twice = 0; twice < 2; ++twice) {
    const auto reader = SqliteReader::Open(path(), store->result_keys()).value();
    for (std::uint32_t tree = 0; tree < (kOld + 1 + kNew) * kTrees; ++tree) {
      ASSERT_EQ(ElapsedOf(*reader, tree), 1) << tree;
    }
    store.reset();
    store = OpenStore({.run_entries = kTrees});
  }
}

// Also where a run ends between the two entries of a result.
TEST_F(ResultKeysTest, CodesAreFoundInMemoryAndInRuns) {
  const StoreOptions options{.run_entries = 7};
  auto store = OpenStore(options);
  constexpr std::uint32_t kTrees = 30;
  for (std::uint32_t tree = 0; tree < kTrees; ++tree) Add(*store, {MeasuredWithCode(tree)});
  EXPECT_GE(NumberByHand("SELECT count(*) FROM result_key_runs"), 6);
  const auto expect_all = [&] {
    const auto shared = store->OpenReader().value();
    const auto alone = OpenReader();
    for (std::uint32_t tree = 0; tree < kTrees; ++tree) {
      for (StoreReader* reader : {shared.get(), alone.get()}) {
        EXPECT_TRUE(CodeIsFound(*reader, tree)) << tree;
        EXPECT_EQ(ElapsedOf(*reader, tree), 1) << tree;
      }
    }
    EXPECT_FALSE(CodeIsFound(*shared, kTrees));
  };
  expect_all();
  store.reset();
  store = OpenStore(options);
  expect_all();
}

// A run of many pages is written by several transactions: whichever of them fails or is the last of
// its program, every result is found.
TEST_F(ResultKeysTest, ARunIsWrittenInPieces) {
  constexpr std::uint32_t kEntries = 20'000;
  const StoreOptions options{.run_entries = kEntries};
  auto store = OpenStore(options);
  std::vector<Evaluation> evaluations;
  for (std::uint32_t tree = 0; tree < kEntries; ++tree) evaluations.push_back(Measured(tree, 1));
  Add(*store, evaluations);
  const auto chunks = [&] { return NumberByHand("SELECT count(*) FROM result_key_chunks"); };
  const auto runs = [&] { return NumberByHand("SELECT count(*) FROM result_key_runs"); };
  const auto expect_all = [&] {
    const auto reader = SqliteReader::Open(path(), store->result_keys()).value();
    for (std::uint32_t tree = 0; tree < kEntries; tree += 77)
      ASSERT_EQ(ElapsedOf(*reader, tree), 1);
  };
  const auto fail = [&] {
    RunByHand("UPDATE writer SET epoch = epoch + 1");
    EXPECT_FALSE(store->Apply(std::vector<Write>{SomeBatch(++batch_, {PlainSpec(2)})}));
    RunByHand("UPDATE writer SET epoch = epoch - 1");
    --batch_;
  };
  ASSERT_EQ(chunks(), 0);
  Add(*store, {Measured(kEntries, 1)});
  EXPECT_GT(chunks(), 0);
  EXPECT_EQ(runs(), 0);
  expect_all();
  fail();
  Add(*store, {Measured(kEntries + 1, 1)});
  EXPECT_EQ(runs(), 1);
  EXPECT_EQ(chunks(), kEntries / 250);
  expect_all();

  RunByHand("DELETE FROM result_key_runs; DELETE FROM result_key_chunks WHERE id % 2 = 0");
  store.reset();
  store = OpenStore(options);  // as if the first program had ended in the middle
  EXPECT_EQ(runs(), 1);
  EXPECT_EQ(chunks(), kEntries / 250);
  expect_all();
}

// Far more rows of one tree than a page of a run holds.
TEST_F(ResultKeysTest, OneTreeMeasuredManyTimes) {
  const auto store = OpenStore({.run_entries = kRunEntries});
  const auto reader = SqliteReader::Open(path(), store->result_keys()).value();
  for (int round = 0; round < 4; ++round) {
    std::vector<Evaluation> evaluations;
    for (int i = 0; i < 400; ++i) evaluations.push_back(Measured(7, 1 + round * 400 + i));
    Add(*store, evaluations);
    EXPECT_EQ(ElapsedOf(*reader, 7), (round + 1) * 400);
  }
  // An old row that answers from the store is found, and not written again.
  const std::int64_t rows = NumberByHand("SELECT count(*) FROM results");
  ASSERT_TRUE(store->Apply(std::vector<Write>{
      SomeBatch(++batch_, {PlainSpec(2)}),
      JobFinished{SomeOutcome({.batch = batch_, .source = OutcomeSource::kStored}, PlainSpec(2),
                              Measured(7, 3))}}));
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM results"), rows);
}

// Each reader caches its answers. A result that becomes suspect must not come from the cache,
// neither of the reader beside the writer nor of one in another process.
TEST_F(ResultKeysTest, WhatIsSuspectedIsForgotten) {
  const auto store = OpenStore({.run_entries = kRunEntries});
  const auto shared = store->OpenReader().value();
  const auto alone = OpenReader();
  Add(*store, {Measured(1, 1), Measured(2, 2)});
  for (int twice = 0; twice < 2; ++twice) {
    ASSERT_EQ(ElapsedOf(*shared, 1), 1);
    ASSERT_EQ(ElapsedOf(*alone, 1), 1);
  }
  const Outcome made = SomeOutcome({}, PlainSpec(2), Measured(1, 1));
  ASSERT_TRUE(store->Apply(std::vector<Write>{ResultsSuspected{.worker = made.worker,
                                                               .since = made.finished_at,
                                                               .flagged_at = made.finished_at,
                                                               .reason = "it drifted"}}));
  for (StoreReader* reader : {shared.get(), alone.get()}) {
    EXPECT_EQ(ElapsedOf(*reader, 1), 0);
    EXPECT_EQ(ElapsedOf(*reader, 2), 0);
  }
  Outcome anew = SomeOutcome({.batch = ++batch_}, PlainSpec(2), Measured(1, 3));
  anew.finished_at += std::chrono::seconds(1);
  ASSERT_TRUE(
      store->Apply(std::vector<Write>{SomeBatch(batch_, {PlainSpec(2)}), JobFinished{anew}}));
  EXPECT_EQ(ElapsedOf(*shared, 1), 3);
  EXPECT_EQ(ElapsedOf(*alone, 1), 3);
}

// The newest result is cached, and an older one answers a request for more precision: neither
// request spoils the answer to the other.
TEST_F(ResultKeysTest, TheNewestThatIsGoodEnoughIsFoundWhateverWasAskedBefore) {
  const auto store = OpenStore({.run_entries = kRunEntries});
  const auto reader = SqliteReader::Open(path(), store->result_keys()).value();
  const auto measured = [](double elapsed_ns, double spread) {
    Evaluation evaluation = Measured(1, elapsed_ns);
    std::get<Measurement>(evaluation.verdict).spread = spread;
    return evaluation;
  };
  Add(*store, {measured(1, 0.002), measured(2, 0.004), measured(3, 0.03), measured(4, 0.02)});
  const auto elapsed = [&](double precision) {
    ResultKey key = KeyFor(Measured(1, 1));
    key.precision = precision;
    const auto found = reader->FindResult(key).value();
    return found ? found->evaluation.measurement().elapsed_ns : 0;
  };
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_EQ(elapsed(0.003), 1);
    EXPECT_EQ(elapsed(0.01), 2);
    EXPECT_EQ(elapsed(0.001), 0);
    EXPECT_EQ(elapsed(0.03), 4);
    EXPECT_EQ(elapsed(0), 4);
  }
}

TEST_F(ResultKeysTest, ARequestConsidersTheNewestResultsOnly) {
  const auto store = OpenStore({.run_entries = kRunEntries});
  const auto reader = SqliteReader::Open(path(), store->result_keys()).value();
  Add(*store, {MeasuredWith(0.001)});
  Add(*store, std::vector<Evaluation>(ResultTable::kMaxCandidates - 1, MeasuredWith(0.02)));
  EXPECT_TRUE(reader->FindResult(KeyOf(0.01)).value());
  Add(*store, {MeasuredWith(0.02)});
  EXPECT_FALSE(reader->FindResult(KeyOf(0.01)).value());
  EXPECT_TRUE(reader->FindResult(KeyOf(0.02)).value());
}

// Ids and times ascend together. Here the clock was set back, so the row behind is never read.
TEST_F(ResultKeysTest, ASearchEndsAtTheFirstResultThatIsTooOld) {
  const auto store = OpenStore({.run_entries = kRunEntries});
  const auto reader = SqliteReader::Open(path(), store->result_keys()).value();
  for (const int second : {20, 10}) {
    Outcome outcome = SomeOutcome({.batch = ++batch_}, PlainSpec(2), Measured(1, second));
    outcome.finished_at = WallTime(std::chrono::seconds(second));
    ASSERT_TRUE(
        store->Apply(std::vector<Write>{SomeBatch(batch_, {PlainSpec(2)}), JobFinished{outcome}}));
  }
  RunByHand("DELETE FROM results WHERE id = 1");
  ResultKey key = KeyOf(0);
  key.measured_since = WallTime(std::chrono::seconds(15));
  EXPECT_EQ(reader->FindResult(key).value(), nullptr);
  key.measured_since = WallTime(std::chrono::seconds(10));
  EXPECT_TRUE(reader->FindResult(key).value());
}

TEST_F(ResultKeysTest, ARepeatedMissReadsNothing) {
  const auto store = OpenStore({.run_entries = kRunEntries});
  const auto reader = SqliteReader::Open(path(), store->result_keys()).value();
  Add(*store, std::vector<Evaluation>(3, MeasuredWith(0.02)));
  EXPECT_EQ(reader->FindResult(KeyOf(0.01)).value(), nullptr);
  RunByHand("DELETE FROM results WHERE id <= 2");  // reading them again would fail
  EXPECT_EQ(reader->FindResult(KeyOf(0.01)).value(), nullptr);
  EXPECT_EQ(reader->FindResult(KeyOf(0.005)).value(), nullptr);
  Add(*store, {MeasuredWith(0.03)});  // from now on the miss may be one no more
  EXPECT_EQ(reader->FindResult(KeyOf(0.01)).error().kind, ErrorKind::kCorrupt);
}

TEST_F(ResultKeysTest, AGroupThatFailsAddsNothing) {
  const auto store = OpenStore({.run_entries = kRunEntries});
  const auto reader = SqliteReader::Open(path(), store->result_keys()).value();
  Add(*store, std::vector<Evaluation>(kRunEntries - 1, Measured(1, 1)));
  std::vector<Write> bad = {
      SomeBatch(++batch_, {PlainSpec(2), PlainSpec(2)}),
      JobFinished{SomeOutcome({.batch = batch_, .index = 0}, PlainSpec(2), Measured(2, 2))},
      JobFinished{
          SomeOutcome({.batch = batch_, .index = 0, .sequence = 2}, PlainSpec(2), Measured(3, 3))}};
  EXPECT_FALSE(store->Apply(bad));
  EXPECT_EQ(ElapsedOf(*reader, 2), 0);
  --batch_;
  Add(*store, {Measured(2, 5), Measured(3, 6)});
  EXPECT_EQ(ElapsedOf(*reader, 2), 5);
  EXPECT_EQ(ElapsedOf(*reader, 3), 6);
}

TEST_F(ResultKeysTest, ADamagedRunIsMadeAgain) {
  const StoreOptions options{.run_entries = kRunEntries};
  {
    const auto store = OpenStore(options);
    std::vector<Evaluation> evaluations;
    for (std::uint32_t tree = 0; tree < 1000; ++tree) evaluations.push_back(Measured(tree, 1));
    Add(*store, evaluations);
    Add(*store, {Measured(5000, 1)});
  }
  ASSERT_EQ(NumberByHand("SELECT count(*) FROM result_key_runs"), 3);
  RunByHand("UPDATE result_key_runs SET filter = zeroblob(length(filter)) WHERE run = 2");
  const auto store = OpenStore(options);
  const auto reader = SqliteReader::Open(path(), store->result_keys()).value();
  for (std::uint32_t tree = 0; tree < 1000; ++tree) ASSERT_EQ(ElapsedOf(*reader, tree), 1) << tree;
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM result_key_runs"), 3);
}

TEST_F(ResultKeysTest, ADamagedPageOfARunIsFoundOut) {
  const auto store = OpenStore({.run_entries = kRunEntries});
  const auto reader = SqliteReader::Open(path(), store->result_keys()).value();
  Add(*store, std::vector<Evaluation>(kRunEntries, Measured(1, 1)));
  Add(*store, {Measured(2, 2)});  // the next group seals
  RunByHand("UPDATE result_key_chunks SET entries = zeroblob(length(entries))");
  const auto found = reader->FindResult(KeyFor(Measured(1, 1)));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, ErrorKind::kCorrupt);
  EXPECT_NE(found.error().message.find("of table result_key_chunks"), std::string::npos);
  EXPECT_EQ(ElapsedOf(*reader, 2), 2);  // others are served
}

}  // namespace
}  // namespace loopfleet::storage
