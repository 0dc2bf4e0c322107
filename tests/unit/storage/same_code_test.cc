// Figures are found by the machine code of their kernels: StoreReader::FindSameCode.

#include <gtest/gtest.h>

#include "storage/store.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

class SameCodeTest : public ScratchDatabase {};

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
        SomeOutcome({.batch = 1, .index = index, .sequence = index + 1U}, spec, evaluation)});
  }
  ASSERT_TRUE(store->Apply(writes));
  const auto reader = OpenReader();
  ResultKey key = KeyFor(measured[0]);
  key.tree = SomeKey(99);
  const StoredAnswer found = reader->FindSameCode("code", key).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->evaluation.tree_key, measured[0].tree_key);
  EXPECT_EQ(found->evaluation.measurement(), measured[0].measurement());
  EXPECT_TRUE(*reader->FindSameCode("other", key));
  EXPECT_FALSE(*reader->FindSameCode("never compiled", key));
  ResultKey cold = key;
  cold.cache = key.cache == CacheState::kWarm ? CacheState::kCold : CacheState::kWarm;
  EXPECT_FALSE(*reader->FindSameCode("code", cold));
  ResultKey fine = key;
  fine.precision = found->evaluation.measurement().spread / 2;
  EXPECT_FALSE(*reader->FindSameCode("code", fine));
  ResultKey recent = key;
  recent.measured_since = found->measured_at + Nanos(1);
  EXPECT_FALSE(*reader->FindSameCode("code", recent));

  const auto finish_again = [&](std::uint64_t batch, int figure) {
    Evaluation again = SomeMeasurement(figure);
    again.code_hash = "code";
    ASSERT_TRUE(store->Apply(std::vector<Write>{
        SomeBatch(batch, {spec}),
        JobFinished{SomeOutcome({.batch = batch, .index = 0, .sequence = 1}, spec, again)}}));
  };
  finish_again(2, 7);
  EXPECT_EQ(reader->FindSameCode("code", key).value()->evaluation.tree_key,
            SomeMeasurement(7).tree_key);
  ASSERT_TRUE(store->Apply(std::vector<Write>{ResultDoubted{
      .job = {{2}, 0}, .flagged_at = found->measured_at, .reason = "another host disagrees"}}));
  EXPECT_FALSE(*reader->FindSameCode("code", key)) << "the newest is in doubt";
  finish_again(3, 8);
  EXPECT_TRUE(*reader->FindSameCode("code", key));
}

}  // namespace
}  // namespace loopfleet::storage
