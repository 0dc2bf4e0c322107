// A drifting worker's results are flagged in steps, and none of them answers meanwhile.

#include <fmt/format.h>

#include "storage/sqlite/id_range.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

constexpr WallTime kStart{std::chrono::seconds(1'700'000'000)};

WallTime TimeOf(std::uint32_t row) { return kStart + std::chrono::seconds(row); }

class SuspicionTest : public ScratchDatabase {
 protected:
  // Row i is about tree i, and measured by worker "a" if i is odd, else by "b", i seconds after
  // kStart.
  static Evaluation AboutTree(std::uint32_t tree, Evaluation evaluation) {
    evaluation.subject = SomeKey(0);
    std::memcpy(evaluation.subject->bytes.data(), &tree, sizeof tree);
    return evaluation;
  }

  void Add(std::uint32_t count, const Evaluation& evaluation) {
    std::vector<Write> writes = {SomeBatch(++batch_, std::vector<JobSpec>(count, PlainSpec(2)))};
    for (std::uint32_t i = 0; i < count; ++i, ++rows_) {
      JobFinished finished{SomeOutcome({.batch = batch_, .index = i, .sequence = i + 1},
                                       PlainSpec(2), AboutTree(rows_, evaluation))};
      finished.outcome.worker = rows_ % 2 == 1 ? "a" : "b";
      finished.outcome.finished_at = TimeOf(rows_);
      finished.cut_above_ns = 1000;
      writes.emplace_back(std::move(finished));
    }
    MustApply(writes);
  }

  void Suspect(std::uint32_t since_row) {
    MustApply({ResultsSuspected{.worker = "a",
                                .since = TimeOf(since_row),
                                .flagged_at = TimeOf(rows_),
                                .reason = "it drifted"}});
  }

  void MustApply(const std::vector<Write>& writes) {
    const Status status = store_->Apply(writes);
    ASSERT_TRUE(status) << status.error().message;
  }

  int Finish() {
    int steps = 0;
    for (; store_->HasMoreToFlag(); ++steps) EXPECT_TRUE(store_->FlagMore());
    return steps;
  }

  bool Answers(std::uint32_t row) {
    const ResultKey key = KeyFor(AboutTree(row, SomeMeasurement(0)));
    const bool answers = reader_->FindResult(key).value() != nullptr;
    EXPECT_EQ(OpenReader()->FindResult(key).value() != nullptr, answers) << "another process";
    return answers;
  }
  bool IsKnownFailure(std::uint32_t row) {
    return reader_
               ->FindFailure({.key = KeyFor(AboutTree(row, SomeMeasurement(0))),
                              .cut_above_ns = 1000,
                              .now = TimeOf(row)})
               .value() != nullptr;
  }

  void Restart() {
    reader_.reset();
    store_.reset();
    store_ = OpenStore();
    reader_ = SqliteReader::Open(path(), store_->result_keys()).value();
  }

  std::unique_ptr<SqliteStore> store_ = OpenStore();
  std::unique_ptr<StoreReader> reader_ = SqliteReader::Open(path(), store_->result_keys()).value();
  std::uint64_t batch_ = 0;
  std::uint32_t rows_ = 0;
};

TEST_F(SuspicionTest, NothingThatIsSuspectedAnswersBeforeItIsFlagged) {
  Add(13'000, SomeMeasurement(0));
  EXPECT_TRUE(Answers(12'999));
  Suspect(1'001);
  Add(2, SomeMeasurement(0));  // not suspected
  for (const bool restarted : {false, true}) {
    EXPECT_LE(NumberByHand("SELECT count(*) FROM suspect_results"), Store::kRowsPerStep);
    EXPECT_TRUE(Answers(999)) << restarted;
    EXPECT_FALSE(Answers(1'001)) << restarted;
    EXPECT_FALSE(Answers(12'999)) << restarted;
    EXPECT_TRUE(Answers(12'998)) << restarted;
    EXPECT_FALSE(Answers(13'001)) << restarted << ": it waits until the others are flagged";
    if (!restarted) Restart();
  }
  EXPECT_EQ(Finish(), 3);  // the last finds nothing
  EXPECT_FALSE(Answers(1'001));
  EXPECT_FALSE(Answers(12'999));
  EXPECT_TRUE(Answers(12'998));
  EXPECT_TRUE(Answers(13'001));
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM suspect_results"), 6'000);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM suspicions"), 0);
}

TEST_F(SuspicionTest, FailuresOfTimeAreForgottenInStepsToo) {
  Add(7'000, SomeFailure(FailureCode::kCut));
  EXPECT_TRUE(IsKnownFailure(6'999));
  Suspect(1);
  EXPECT_FALSE(IsKnownFailure(1));
  EXPECT_FALSE(IsKnownFailure(6'999));
  EXPECT_TRUE(IsKnownFailure(6'998));
  Finish();
  EXPECT_FALSE(IsKnownFailure(6'999));
  EXPECT_TRUE(IsKnownFailure(6'998));
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM known_failures"), 3'500);
}

// Otherwise one step would not do: it looks at kRowsPerStep rows.
TEST_F(SuspicionTest, OlderRowsAreNotLookedAt) {
  Add(13'000, SomeMeasurement(0));
  Suspect(12'999);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM suspicions"), 0);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM suspect_results"), 1);
  EXPECT_TRUE(Answers(12'997));
  EXPECT_FALSE(Answers(12'999));
}

TEST_F(SuspicionTest, ADamagedSuspicionIsDropped) {
  Add(13'000, SomeMeasurement(0));
  Suspect(1);
  RunByHand("UPDATE suspicions SET next_result = -1");
  EXPECT_EQ(Finish(), 1);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM suspicions"), 0);
}

TEST(IdRange, IsFoundInFewReads) {
  int reads = 0;
  const auto time_of = [&](std::int64_t id) -> Result<std::optional<WallTime>> {
    ++reads;
    return kStart + std::chrono::minutes(2 * id);
  };
  const IdRange range =
      RangeSince(kStart + std::chrono::minutes(6'000'000), 4'000'000, time_of).value();
  EXPECT_EQ(range.first, 3'000'000);
  EXPECT_EQ(range.last, 4'000'000);
  EXPECT_LE(reads, 22);
}

// Hours, by id from 1 on. From id 6 on all rows are as new as hour 100.
TEST(IdRange, LeavesNothingOutWhateverTheClockShowedBefore) {
  for (const std::vector<int>& hours :
       std::vector<std::vector<int>>{{1, 2, 3, 4, 5, 100, 101, 102, 103},
                                     {200, 201, 202, 1, 2, 100, 150, 101, 102},
                                     {1, 200, 2, 201, 3, 300, 100, 100, 100},
                                     {1, -1, -1, 4, -1, -1, 101, -1, 103}}) {  // -1: damaged
    const auto time_of = [&](std::int64_t id) -> Result<std::optional<WallTime>> {
      const int hour = hours[static_cast<std::size_t>(id - 1)];
      if (hour < 0) return std::nullopt;
      return kStart + std::chrono::hours(hour);
    };
    const auto last = static_cast<std::int64_t>(hours.size());
    const IdRange range = RangeSince(kStart + std::chrono::hours(100), last, time_of).value();
    EXPECT_LE(range.first, 6);
    EXPECT_EQ(range.last, last);
  }
  const auto none = [](std::int64_t) -> Result<std::optional<WallTime>> { return std::nullopt; };
  EXPECT_TRUE(RangeSince(kStart, 0, none).value().empty());
}

}  // namespace
}  // namespace loopfleet::storage
