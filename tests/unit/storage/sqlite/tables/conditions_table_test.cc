// Conditions are written once, however many there are.

#include "storage/sqlite/tables/conditions_table.h"

#include <set>

#include "tests/unit/storage/record_samples.h"
#include "tests/unit/storage/scratch_database.h"

namespace loopfleet::storage {
namespace {

// Of one host, as its n-th start measures its peaks.
Conditions Start(int n) {
  Conditions conditions = SomeConditions();
  conditions.hardware.peaks.flop_per_second += n;
  return conditions;
}

using ConditionsTableTest = ScratchDatabase;

TEST_F(ConditionsTableTest, MoreThanAreCachedAreFoundAgain) {
  constexpr int kStarts = 9'000;  // beyond both generations of the cache
  OpenStore();
  const auto connection = OpenByHand();
  ASSERT_TRUE(connection->Run("BEGIN"));
  ConditionsTable table(*connection);
  const ConditionsId hot = table.Intern(SomeConditions("hot")).value();
  for (int n = 0; n < kStarts; ++n) {
    EXPECT_EQ(table.Intern(Start(n)).value(), hot + 1 + n);
    if (n % 1000 == 0) {
      EXPECT_EQ(table.Intern(SomeConditions("hot")).value(), hot);
    }
  }
  EXPECT_EQ(table.Intern(Start(0)).value(), hot + 1);
  EXPECT_EQ(table.Find(hot + 1).value(), Start(0));
  EXPECT_EQ(connection->Number("SELECT count(*) FROM conditions").value(), kStarts + 1);
}

// Otherwise a look-up compares with all conditions of the host.
TEST(ConditionsHashTest, ConditionsOfOneHostHaveDifferentHashes) {
  std::set<std::size_t> hashes;
  for (int n = 0; n < 1000; ++n) {
    hashes.insert(ConditionsHash{}(Start(n)));
    Conditions other = SomeConditions();
    other.threads = static_cast<std::uint32_t>(n + 10);
    hashes.insert(ConditionsHash{}(other));
    other = SomeConditions();
    other.isolation = fmt::format("limit {}", n);
    hashes.insert(ConditionsHash{}(other));
  }
  EXPECT_EQ(hashes.size(), 3000u);
}

}  // namespace
}  // namespace loopfleet::storage
