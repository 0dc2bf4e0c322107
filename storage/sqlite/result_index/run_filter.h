#pragma once
// Filters over the hashes of runs (storage/sqlite/result_index/result_keys.h): whether a run may
// contain a hash. The words of one filter are stored with its run. A FilterGroup holds many filters
// of equal size in memory, in the order in which a look-up reads them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/sqlite/result_index/result_hash.h"

namespace loopfleet::storage {

// A blocked Bloom filter with 24 bits for each key: about 1 false positive in 10,000. (With 16
// bits, as before version 13, 1 in 1,000: among 100 million results each look-up read a page in
// vain.)
using RunFilter = std::vector<std::uint64_t>;
RunFilter NewFilter(std::size_t keys);
void AddTo(RunFilter& filter, ResultHash hash);
bool MayContain(const RunFilter& filter, ResultHash hash);

// Built in steps: filters of 65,544 words took some 25 ms at once. Once it is whole it
// does not change, and any thread may read it.
class FilterGroup {
 public:
  static constexpr std::size_t kFilters = 32;
  using Filters = std::span<const RunFilter* const, kFilters>;

  // `words`: of each filter.
  explicit FilterGroup(std::size_t words);
  // Adds the next words of the filters, at most `most`. Always pass the same filters.
  void Grow(const Filters& filters, std::size_t most);
  bool is_whole() const { return grown_ == words_; }
  // Bit i: filter i may contain it. Reads 8 words, where 32 filters would be 32 cache lines.
  std::uint32_t MayContain(ResultHash hash) const;

 private:
  std::size_t words_;
  std::size_t grown_ = 0;               // words added
  std::vector<std::uint32_t> columns_;  // for each bit of a filter: which of the filters have it
};

}  // namespace loopfleet::storage
