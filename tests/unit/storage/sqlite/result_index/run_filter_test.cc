// Filters miss nothing, and a group says what its filters say.

#include "storage/sqlite/result_index/run_filter.h"

#include <gtest/gtest.h>

#include <array>

#include "common/base/random.h"

namespace loopfleet::storage {
namespace {

constexpr std::size_t kKeys = 1000;

TEST(RunFilterTest, AGroupSaysWhatItsFiltersSay) {
  SplitMix64 random(1);
  std::vector<RunFilter> filters(FilterGroup::kFilters, NewFilter(kKeys));
  std::vector<ResultHash> hashes;
  for (RunFilter& filter : filters) {
    for (std::size_t i = 0; i < kKeys; ++i) {
      AddTo(filter, hashes.emplace_back(random.Next()));
    }
  }
  std::array<const RunFilter*, FilterGroup::kFilters> pointers;
  for (std::size_t i = 0; i < filters.size(); ++i) pointers[i] = &filters[i];
  FilterGroup group(filters.front().size());
  int steps = 0;
  for (; !group.is_whole(); ++steps) group.Grow(pointers, 100);
  EXPECT_EQ(steps, 4) << "384 words";
  for (std::size_t i = 0; i < 20'000; ++i) hashes.push_back(random.Next());
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    std::uint32_t expected = 0;
    for (std::size_t f = 0; f < filters.size(); ++f) {
      expected |= std::uint32_t{MayContain(filters[f], hashes[i])} << f;
    }
    ASSERT_EQ(group.MayContain(hashes[i]), expected);
    if (i < FilterGroup::kFilters * kKeys) {
      ASSERT_TRUE(expected >> i / kKeys & 1);
    }
  }
}

TEST(RunFilterTest, FewStrangersPass) {
  SplitMix64 random(2);
  RunFilter filter = NewFilter(100'000);
  for (int i = 0; i < 100'000; ++i) AddTo(filter, random.Next());
  int passed = 0;
  for (int i = 0; i < 100'000; ++i) passed += MayContain(filter, random.Next());
  EXPECT_LT(passed, 40);  // about 1 in 10,000
}

}  // namespace
}  // namespace loopfleet::storage
