// Figures are found by the machine code of their kernels: StoreReader::FindSameCode.

#include <gtest/gtest.h>

#include "storage/sqlite/sqlite_store.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

class SameCodeTest : public ScratchDatabase {
 protected:
  const ProgramKey program_ = SomeKey(50);

  static Evaluation WithCode(int number, bool is_copy = false) {
    Evaluation evaluation = SomeMeasurement(static_cast<std::uint8_t>(number));
    evaluation.code_hash = "code";
    evaluation.same_code = is_copy;
    std::get<Measurement>(evaluation.verdict).elapsed_mean_ns += number;
    return evaluation;
  }
  // The same figure for another tree, by another worker.
  static Evaluation CopyOf(const Evaluation& original, int number) {
    Evaluation copy = WithCode(number, /*is_copy=*/true);
    copy.verdict = original.verdict;
    return copy;
  }
  // A batch of one job, measured `at` by `worker`.
  void Finish(Store& store, std::uint64_t batch, const Evaluation& evaluation,
              const std::string& worker, WallTime at) const {
    JobFinished finished{.outcome = SomeOutcome({.batch = batch, .index = 0, .sequence = 1},
                                                PlainSpec(3), evaluation),
                         .program = program_};
    finished.outcome.worker = worker;
    finished.outcome.finished_at = at;
    const Status applied =
        store.Apply(std::vector<Write>{SomeBatch(batch, {PlainSpec(3)}), finished});
    ASSERT_TRUE(applied) << applied.error().message;
  }
  static WallTime Hour(int hour) { return WallTime(std::chrono::hours(hour)); }
};

// Another tree with the same machine code finds the newest measurement that it may trust.
TEST_F(SameCodeTest, TheNewestTrustedMeasurementIsFound) {
  const auto store = OpenStore();
  const JobSpec spec = PlainSpec(3);
  std::vector<Write> writes{SomeBatch(1, std::vector<JobSpec>(4, spec))};
  std::vector<Evaluation> measured;
  for (std::uint32_t index = 0; index < 4; ++index) {
    Evaluation& evaluation = measured.emplace_back(SomeMeasurement(static_cast<int>(index) + 1));
    evaluation.code_hash = index == 3 ? "other" : "code";
    evaluation.same_code = index == 1;  // a copy, newer than its original
    if (index == 2) std::get<Measurement>(evaluation.verdict).grade = Grade::kC;
    writes.push_back(JobFinished{
        .outcome =
            SomeOutcome({.batch = 1, .index = index, .sequence = index + 1U}, spec, evaluation),
        .program = program_});
  }
  ASSERT_TRUE(store->Apply(writes));
  const auto reader = OpenReader();
  ResultKey key = KeyFor(measured[0]);
  key.subject = SomeKey(99);
  const StoredAnswer found = reader->FindSameCode("code", program_, key).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->evaluation.subject, measured[0].subject);
  EXPECT_EQ(found->evaluation.measurement(), measured[0].measurement());
  EXPECT_TRUE(*reader->FindSameCode("other", program_, key));
  EXPECT_FALSE(*reader->FindSameCode("never compiled", program_, key));
  ResultKey cold = key;
  cold.cache = key.cache == CacheState::kWarm ? CacheState::kCold : CacheState::kWarm;
  EXPECT_FALSE(*reader->FindSameCode("code", program_, cold));
  ResultKey fine = key;
  fine.precision = found->evaluation.measurement().spread / 2;
  EXPECT_FALSE(*reader->FindSameCode("code", program_, fine));
  ResultKey recent = key;
  recent.measured_since = found->measured_at + Nanos(1);
  EXPECT_FALSE(*reader->FindSameCode("code", program_, recent));
}

// A worker may state any code: it answers for the program of the worker's own job alone.
TEST_F(SameCodeTest, CodeOfAnotherProgramIsNotTheSame) {
  const auto store = OpenStore();
  Finish(*store, 1, WithCode(1), "a", Hour(1));
  const ResultKey key = KeyFor(WithCode(1));
  EXPECT_TRUE(*OpenReader()->FindSameCode("code", program_, key));
  EXPECT_FALSE(*OpenReader()->FindSameCode("code", SomeKey(51), key));
  RunByHand("UPDATE result_programs SET program = zeroblob(16)");
  const auto damaged = OpenReader()->FindSameCode("code", ProgramKey{}, key);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().kind, ErrorKind::kCorrupt);
  RunByHand("DELETE FROM result_programs");  // as in a database of an earlier version
  EXPECT_FALSE(*OpenReader()->FindSameCode("code", program_, key));
}

TEST_F(SameCodeTest, ADoubtedMeasurementHidesNoOlderOne) {
  const auto store = OpenStore();
  const auto reader = OpenReader();
  ResultKey key = KeyFor(WithCode(1));
  key.subject = SomeKey(99);
  Finish(*store, 1, WithCode(1), "a", Hour(1));
  Finish(*store, 2, WithCode(2), "a", Hour(2));
  EXPECT_EQ((*reader->FindSameCode("code", program_, key))->evaluation.subject,
            WithCode(2).subject);
  ASSERT_TRUE(store->Apply(std::vector<Write>{
      ResultDoubted{.job = {{2}, 0}, .flagged_at = Hour(3), .reason = "another host disagrees"}}));
  EXPECT_EQ((*reader->FindSameCode("code", program_, key))->evaluation.subject,
            WithCode(1).subject);
  key.measured_since = Hour(2);
  EXPECT_FALSE(*reader->FindSameCode("code", program_, key));
}

TEST_F(SameCodeTest, ACopyIsAsOldAsItsOriginal) {
  const auto store = OpenStore();
  const auto reader = OpenReader();
  const Evaluation original = WithCode(1);
  Finish(*store, 1, original, "a", Hour(1));
  Finish(*store, 2, CopyOf(original, 2), "b", Hour(10));
  ResultKey key = KeyFor(WithCode(2));
  EXPECT_TRUE(*reader->FindResult(key));
  key.measured_since = Hour(5);
  EXPECT_FALSE(*reader->FindResult(key));
}

// The tree's own newer measurement still answers, though the copy before it is too old.
TEST_F(SameCodeTest, AnOldCopyHidesNoNewMeasurement) {
  const auto store = OpenStore();
  const auto reader = OpenReader();
  const Evaluation original = WithCode(1);
  Finish(*store, 1, original, "a", Hour(1));
  Finish(*store, 2, WithCode(2), "b", Hour(9));
  Finish(*store, 3, CopyOf(original, 2), "b", Hour(10));
  ResultKey key = KeyFor(WithCode(2));
  key.measured_since = Hour(5);
  const StoredAnswer found = *reader->FindResult(key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->measured_at, Hour(9));
}

// The same figure three times: measured by one worker, copied by two others.
class DoubtTest : public SameCodeTest {
 protected:
  void SetUp() override {
    const Evaluation original = WithCode(1);
    Finish(*store_, 1, original, "a", Hour(1));
    Finish(*store_, 2, CopyOf(original, 2), "b", Hour(10));
    Finish(*store_, 3, CopyOf(original, 3), "c", Hour(10));
    for (const int tree : {1, 2, 3}) EXPECT_TRUE(Answers(tree)) << tree;
  }
  bool Answers(int tree) { return *reader_->FindResult(KeyFor(WithCode(tree))) != nullptr; }
  void ExpectThatNoneAnswersAfter(const Write& doubt) {
    ASSERT_TRUE(store_->Apply(std::vector<Write>{doubt}));
    while (store_->HasMoreToFlag()) ASSERT_TRUE(store_->FlagMore());
    for (const int tree : {1, 2, 3}) EXPECT_FALSE(Answers(tree)) << tree;
    EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE suspect IS NULL"), 0);
  }

  const std::unique_ptr<SqliteStore> store_ = OpenStore();
  const std::unique_ptr<StoreReader> reader_ = OpenReader();
};

TEST_F(DoubtTest, AboutTheMeasuringWorkerReachesTheCopies) {
  ExpectThatNoneAnswersAfter(ResultsSuspected{
      .worker = "a", .since = Hour(0), .flagged_at = Hour(11), .reason = "it drifted"});
}

// The worker of a copy timed nothing.
TEST_F(DoubtTest, AboutAWorkerThatCopiedReachesNothing) {
  ASSERT_TRUE(store_->Apply(std::vector<Write>{ResultsSuspected{
      .worker = "b", .since = Hour(0), .flagged_at = Hour(11), .reason = "it drifted"}}));
  for (const int tree : {1, 2, 3}) EXPECT_TRUE(Answers(tree)) << tree;
  while (store_->HasMoreToFlag()) ASSERT_TRUE(store_->FlagMore());
  for (const int tree : {1, 2, 3}) EXPECT_TRUE(Answers(tree)) << tree;
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE suspect IS NOT NULL"), 0);
}

TEST_F(DoubtTest, AboutTheMeasurementReachesTheCopies) {
  ExpectThatNoneAnswersAfter(
      ResultDoubted{.job = {{1}, 0}, .flagged_at = Hour(11), .reason = "another host disagrees"});
}

TEST_F(DoubtTest, AboutACopyReachesTheMeasurementAndTheOtherCopies) {
  ExpectThatNoneAnswersAfter(
      ResultDoubted{.job = {{3}, 0}, .flagged_at = Hour(11), .reason = "another host disagrees"});
}

// A copy whose measurement the store never had, because that job was cancelled, stands for itself.
TEST_F(SameCodeTest, ACopyWithoutAnOriginalAnswersForItsTree) {
  const auto store = OpenStore();
  const auto reader = OpenReader();
  Finish(*store, 1, WithCode(1), "a", Hour(1));
  Finish(*store, 2, CopyOf(WithCode(7), 2), "b", Hour(10));
  ResultKey key = KeyFor(WithCode(2));
  key.measured_since = Hour(5);
  EXPECT_TRUE(*reader->FindResult(key));
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM copied_results WHERE result = original"), 1);
  // It is no measurement of its code, also for who reads the rows again.
  EXPECT_FALSE(*reader->FindSameCode("code", program_, key));
  ASSERT_TRUE(store->Apply(std::vector<Write>{ResultsSuspected{
      .worker = "b", .since = Hour(0), .flagged_at = Hour(11), .reason = "it drifted"}}));
  EXPECT_FALSE(*reader->FindResult(key)) << "its worker is all that is known of it";
}

}  // namespace
}  // namespace loopfleet::storage
