// Which files are opened, and what is said of the others.

#include "storage/migrations.h"

#include <fstream>

#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

class MigrationsTest : public ScratchDatabase {
 protected:
  void ExpectRefused(ErrorKind kind, std::string_view text) {
    const auto store = Store::Open(path());
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().kind, kind) << store.error().message;
    EXPECT_NE(store.error().message.find(text), std::string::npos) << store.error().message;
    const auto reader = StoreReader::Open(path());
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().kind, kind) << reader.error().message;
  }
};

TEST_F(MigrationsTest, ANewFileGetsTheSchema) {
  OpenStore();
  EXPECT_EQ(NumberByHand("PRAGMA user_version"), 2);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND "
                         "type = 'table' AND NOT strict AND name NOT LIKE 'sqlite%'"),
            0);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM failure_codes"),
            static_cast<std::int64_t>(FailureTable().size()));
}

// tests/golden/storage/version1.db was written by a real cluster of version 1: two measurements of
// mm64_64_64 and a failure.
TEST_F(MigrationsTest, ADatabaseOfVersion1IsBroughtHereWithAllItsRows) {
  std::filesystem::copy_file(
      std::filesystem::path(LOOPFLEET_SOURCE_DIR) / "tests/golden/storage/version1.db", path());
  {
    const auto refused = StoreReader::Open(path());
    ASSERT_FALSE(refused);  // only the writer changes it
  }
  const auto store = OpenStore();
  EXPECT_EQ(NumberByHand("PRAGMA user_version"), 2);
  const auto reader = OpenReader();
  const auto outcomes = reader->ReadOutcomes({1}, 0, 10);
  ASSERT_TRUE(outcomes) << outcomes.error().message;
  ASSERT_EQ(outcomes->size(), 2U);
  const Evaluation& evaluation = outcomes->front().evaluation;
  ASSERT_TRUE(evaluation.ok());
  EXPECT_DOUBLE_EQ(evaluation.measurement().elapsed_ns, 2829.2083333333335);
  EXPECT_EQ(evaluation.measurement().clock_before_mhz, 0);  // was not measured then
  EXPECT_EQ(evaluation.conditions->hardware.peaks, DevicePeaks{});
  EXPECT_EQ(evaluation.conditions->policy, "fixed15x60us");
  const auto found = reader->FindResult(KeyFor(evaluation));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(*found);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE status = 'ok'"), 2);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM v_results WHERE failure = 'INVALID_ACTION'"), 1);
  // What its host stated is no reference clock.
  EXPECT_TRUE(store->Recover()->reference_clocks.empty());
}

TEST_F(MigrationsTest, ANewerVersionIsRefused) {
  OpenStore();
  RunByHand("PRAGMA user_version = 3");
  ExpectRefused(ErrorKind::kInvalid,
                "has schema version 3, this program works with 2: use the newer");
}

TEST_F(MigrationsTest, AVersionThatNeverWasIsRefusedByReaders) {
  OpenStore();
  RunByHand("PRAGMA user_version = 0");
  const auto reader = StoreReader::Open(path());
  ASSERT_FALSE(reader);
  EXPECT_NE(reader.error().message.find("start a coordinator of this version"), std::string::npos)
      << reader.error().message;
}

TEST_F(MigrationsTest, AnotherProgramsDatabaseIsLeftAlone) {
  RunByHand("CREATE TABLE theirs (x)");
  ExpectRefused(ErrorKind::kInvalid, "was not made by loopfleet");
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM sqlite_schema"), 1);
}

TEST_F(MigrationsTest, AFileThatIsNoDatabaseIsLeftAlone) {
  std::ofstream(path()) << "This is a letter, and has been one for more than sixteen bytes.\n";
  ExpectRefused(ErrorKind::kCorrupt, "not a database");
}

TEST_F(MigrationsTest, ADirectoryThatIsMissingIsNamed) {
  const auto store = Store::Open(directory() / "no" / "x.db");
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message.find("/no/x.db"), std::string::npos) << store.error().message;
}

}  // namespace
}  // namespace loopfleet::storage
