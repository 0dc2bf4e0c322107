#include "storage/sqlite/result_index/run_filter.h"

namespace loopfleet::storage {
namespace {

constexpr std::size_t kBlockWords = 8;     // a block of a filter is one cache line
constexpr std::size_t kKeysPerBlock = 21;  // 24 bits each
constexpr std::size_t kWordBits = 64;

std::uint64_t BlockOf(ResultHash hash, std::size_t words) {
  return ((hash >> 32) * (words / kBlockWords)) >> 32;
}

// One bit in each word of the block, six bits of the mixed hash for each. Ends when `visit` returns
// false.
template <class Visit>
void ForEachBit(ResultHash hash, std::size_t words, const Visit& visit) {
  const std::size_t block = BlockOf(hash, words) * kBlockWords;
  const std::uint64_t mixed = (hash | 1) * 0x9e3779b97f4a7c15ULL;
  for (std::size_t i = 0; i < kBlockWords; ++i) {
    if (!visit(block + i, mixed >> (6 * i + 10) & (kWordBits - 1))) return;
  }
}

}  // namespace

RunFilter NewFilter(std::size_t keys) {
  return RunFilter((keys / kKeysPerBlock + 1) * kBlockWords);
}

void AddTo(RunFilter& filter, ResultHash hash) {
  ForEachBit(hash, filter.size(), [&](std::size_t word, std::uint64_t bit) {
    filter[word] |= std::uint64_t{1} << bit;
    return true;
  });
}

bool MayContain(const RunFilter& filter, ResultHash hash) {
  bool contains = true;
  ForEachBit(hash, filter.size(), [&](std::size_t word, std::uint64_t bit) {
    contains = (filter[word] >> bit & 1) != 0;
    return contains;
  });
  return contains;
}

void Prefetch(const RunFilter& filter, ResultHash hash) {
  const std::uint64_t* block = filter.data() + BlockOf(hash, filter.size()) * kBlockWords;
  __builtin_prefetch(block);
  __builtin_prefetch(block + kBlockWords - 1);  // words are not aligned to cache lines
}

}  // namespace loopfleet::storage
