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
  EXPECT_EQ(NumberByHand("PRAGMA user_version"), 1);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND "
                         "type = 'table' AND NOT strict AND name NOT LIKE 'sqlite%'"),
            0);
  EXPECT_EQ(NumberByHand("SELECT count(*) FROM failure_codes"),
            static_cast<std::int64_t>(FailureTable().size()));
}

TEST_F(MigrationsTest, ANewerVersionIsRefused) {
  OpenStore();
  RunByHand("PRAGMA user_version = 2");
  ExpectRefused(ErrorKind::kInvalid,
                "has schema version 2, this program works with 1: use the newer");
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
