#include "storage/sqlite/result_index/run_filter.h"

#include <algorithm>
#include <array>

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

// Afterwards bit f of rows[b] is what bit b of rows[f] was (Warren, Hacker's Delight, 7-3).
void Transpose(std::span<std::uint32_t, 32> rows) {
  std::uint32_t mask = 0x0000ffff;
  for (std::size_t j = 16; j != 0; j >>= 1, mask ^= mask << j) {
    for (std::size_t k = 0; k < 32; k = ((k | j) + 1) & ~j) {
      const std::uint32_t swapped = ((rows[k] >> j) ^ rows[k | j]) & mask;
      rows[k] ^= swapped << j;
      rows[k | j] ^= swapped;
    }
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

FilterGroup::FilterGroup(std::size_t words) : words_(words), columns_(words * kWordBits) {}

void FilterGroup::Grow(const Filters& filters, std::size_t most) {
  std::array<std::uint32_t, kFilters> rows;
  const std::size_t end = std::min(words_, grown_ + most);
  for (; grown_ < end; ++grown_) {
    for (const std::size_t half : {0, 32}) {
      for (std::size_t i = 0; i < kFilters; ++i) {
        rows[i] = static_cast<std::uint32_t>((*filters[i])[grown_] >> half);
      }
      Transpose(rows);
      std::ranges::copy(rows,
                        columns_.begin() + static_cast<std::ptrdiff_t>(grown_ * kWordBits + half));
    }
  }
}

std::uint32_t FilterGroup::MayContain(ResultHash hash) const {
  std::uint32_t which = ~std::uint32_t{0};
  ForEachBit(hash, words_, [&](std::size_t word, std::uint64_t bit) {
    which &= columns_[word * kWordBits + bit];
    return true;  // all are read at once
  });
  return which;
}

}  // namespace loopfleet::storage
