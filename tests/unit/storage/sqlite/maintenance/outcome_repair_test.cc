// An unreadable page of `outcomes` is reported, then repaired, and only its own rows are lost.

#include "storage/outcome_repair.h"

#include <algorithm>

#include "storage/database_check.h"
#include "storage/unfinished_jobs.h"
#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

constexpr std::uint32_t kJobs = 9'000;
constexpr std::uint32_t kFinished = kJobs - 1'000;
constexpr std::string_view kIndexOfJobs = "sqlite_autoindex_outcomes_2";

Write Finish(std::uint64_t batch, std::uint32_t index) {
  return JobFinished{
      SomeOutcome({.batch = batch, .index = index, .sequence = index + std::uint64_t{1}},
                  PlainSpec(2), BareFailure(FailureCode::kInvalidAction))};
}

class OutcomeRepairTest : public ScratchDatabase {
 protected:
  // Batch 1, of which all jobs but the last thousand have finished, and batch 2 with one job.
  void Fill() {
    std::vector<Write> writes{SomeBatch(1, std::vector(kJobs, PlainSpec(2))),
                              SomeBatch(2, {PlainSpec(2)})};
    for (std::uint32_t i = 0; i < kFinished; ++i) writes.push_back(Finish(1, i));
    const Status applied = OpenStore()->Apply(writes);
    ASSERT_TRUE(applied) << applied.error().message;
  }
  OutcomeRepair MustRepair() {
    auto repair = RepairOutcomes(path());
    EXPECT_TRUE(repair) << repair.error().message;
    return repair ? *std::move(repair) : OutcomeRepair{};
  }
  static std::vector<std::uint64_t> SequencesOf(const std::vector<OutcomePlace>& places) {
    std::vector<std::uint64_t> sequences;
    for (const OutcomePlace& place : places) {
      EXPECT_EQ(place.batch, BatchId{1});
      sequences.push_back(place.sequence);
    }
    return sequences;
  }
  // Expects all outcomes of batch 1, in order and without a gap. Returns the sequences of the lost
  // ones.
  std::vector<std::uint64_t> ReadLost(std::size_t finished) {
    std::vector<Outcome> all;
    const auto reader = OpenReader();
    while (true) {
      const auto more = reader->ReadOutcomes({1}, all.size(), {.max_rows = 700});
      EXPECT_TRUE(more) << more.error().message;
      if (!more || more->empty()) break;
      all.insert(all.end(), more->begin(), more->end());
    }
    EXPECT_EQ(all.size(), finished);
    std::vector<std::uint64_t> lost;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].job, (JobId{{1}, i}));
      EXPECT_EQ(all[i].sequence, i + 1);
      if (all[i].evaluation.failure().code == FailureCode::kStorageCorrupt) {
        lost.push_back(i + std::uint64_t{1});
      }
    }
    return lost;
  }
  bool CheckFindsDamageIn(std::string_view table) {
    const DatabaseCheck check = CheckDatabase(path()).value();
    return std::ranges::find(check.damage, table, &loopfleet::storage::Damage::table) !=
           check.damage.end();
  }
};

TEST_F(OutcomeRepairTest, ADamagedPageLosesItsOwnRowsAndNoOthers) {
  struct Case {
    std::string_view tree;
    PageKind page;
    std::size_t least_lost, most_lost;
  };
  for (const Case& damage : {Case{"outcomes", PageKind::kMiddleLeaf, 1, 200},
                             Case{"outcomes", PageKind::kMiddleInternal, 1, kFinished / 2},
                             Case{"outcomes", PageKind::kLastLeaf, 1, 200},
                             Case{kIndexOfJobs, PageKind::kMiddleLeaf, 0, 0},
                             Case{kIndexOfJobs, PageKind::kLastLeaf, 0, 0}}) {
    SCOPED_TRACE(fmt::format("{} {}", damage.tree, static_cast<int>(damage.page)));
    std::filesystem::remove(path());
    Fill();
    DamagePage(damage.tree, damage.page);
    EXPECT_TRUE(CheckFindsDamageIn("outcomes"));
    const OutcomeRepair repair = MustRepair();
    EXPECT_TRUE(repair.was_damaged);
    EXPECT_EQ(repair.kept_as, "outcomes_damaged_1");
    EXPECT_GE(repair.lost.size(), damage.least_lost);
    EXPECT_LE(repair.lost.size(), damage.most_lost);
    EXPECT_FALSE(CheckFindsDamageIn("outcomes"));
    const DatabaseCheck check = CheckDatabase(path()).value();
    EXPECT_TRUE(check.ok()) << check.damage.front().table << ": " << check.damage.front().what;
    const auto kept = std::ranges::find(check.tables, "outcomes_damaged_1", &CheckedTable::name);
    ASSERT_NE(kept, check.tables.end());
    EXPECT_EQ(kept->damaged > 0, damage.tree == "outcomes");
    EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results"), kFinished);

    const auto store = OpenStore();
    EXPECT_EQ(ReadLost(kFinished), SequencesOf(repair.lost));
    EXPECT_EQ(OpenReader()->FindBatch({1}).value()->failed, kFinished);
    EXPECT_EQ(store->Recover().value().jobs.size(), kJobs - kFinished + 1);
    std::vector<Write> writes{Finish(2, 0)};
    for (std::uint32_t i = kFinished; i < kJobs; ++i) writes.push_back(Finish(1, i));
    const Status applied = store->Apply(writes);
    EXPECT_TRUE(applied) << applied.error().message;
    EXPECT_EQ(ReadLost(kJobs), SequencesOf(repair.lost));
    EXPECT_TRUE(store->Recover().value().jobs.empty());
  }
}

TEST_F(OutcomeRepairTest, AWriteBesideADamagedPageIsRefusedUntilTheRepair) {
  Fill();
  DamagePage("outcomes", PageKind::kLastLeaf);
  {
    const auto store = OpenStore();  // the start does not look for damage
    EXPECT_EQ(store->Recover().value().jobs.size(), kJobs - kFinished + 1);
    const std::vector<Write> writes{Finish(1, kFinished)};
    EXPECT_EQ(store->Apply(writes).error().kind, ErrorKind::kCorrupt);
    EXPECT_EQ(RepairOutcomes(path()).error().kind, ErrorKind::kUnavailable) << "the store is open";
  }
  EXPECT_TRUE(MustRepair().was_damaged);
  const std::vector<Write> writes{Finish(1, kFinished)};
  EXPECT_TRUE(OpenStore()->Apply(writes));
}

TEST_F(OutcomeRepairTest, AKeptTableCanBeDroppedAlthoughItCannotBeRead) {
  Fill();
  DamagePage("outcomes", PageKind::kMiddleLeaf);
  const std::vector<std::uint64_t> lost = SequencesOf(MustRepair().lost);
  const auto bytes = std::filesystem::file_size(path());
  EXPECT_EQ(DropKeptOutcomes(path()).value(), 1U);
  EXPECT_LT(std::filesystem::file_size(path()), bytes * 3 / 4);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM sqlite_schema WHERE name GLOB '*_damaged_*'"), 0);
  EXPECT_TRUE(CheckDatabase(path()).value().ok());
  {
    const auto store = OpenStore();
    EXPECT_EQ(ReadLost(kFinished), lost);
    EXPECT_EQ(DropKeptOutcomes(path()).error().kind, ErrorKind::kUnavailable);
  }
  EXPECT_EQ(DropKeptOutcomes(path()).value(), 0U);
}

TEST_F(OutcomeRepairTest, ASoundTableIsLeftAsItIs) {
  Fill();
  const auto schema = NumberByHand("PRAGMA schema_version");
  EXPECT_FALSE(MustRepair().was_damaged);
  EXPECT_EQ(NumberByHand("PRAGMA schema_version"), schema);
  DamagePage(kIndexOfJobs, PageKind::kMiddleLeaf);
  EXPECT_EQ(MustRepair().kept_as, "outcomes_damaged_1");
  EXPECT_FALSE(MustRepair().was_damaged);
  DamagePage(kIndexOfJobs, PageKind::kMiddleLeaf);
  EXPECT_EQ(MustRepair().kept_as, "outcomes_damaged_2");
  std::filesystem::remove(path());
  EXPECT_EQ(RepairOutcomes(path()).error().kind, ErrorKind::kNotFound);
}

}  // namespace
}  // namespace loopfleet::storage
