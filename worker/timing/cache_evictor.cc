#include "worker/timing/cache_evictor.h"

#include <algorithm>
#include <cstdlib>

namespace loopfleet::worker {
namespace {

constexpr std::size_t kAlignment = 4096;
constexpr std::size_t kLine = 64;
constexpr std::uint64_t kCommonCache = std::uint64_t{32} << 20;
// Caches do not replace strictly the oldest line; reading twice the size once leaves little behind.
constexpr std::size_t kTimes = 2;

}  // namespace

void CacheEvictor::Release(std::byte* memory) { std::free(memory); }

std::size_t CacheEvictor::BytesFor(std::uint64_t cache_bytes) {
  const std::uint64_t cache = cache_bytes > 0 ? cache_bytes : kCommonCache;
  return (cache * kTimes + kAlignment - 1) / kAlignment * kAlignment;
}

bool CacheEvictor::Prepare(std::uint64_t cache_bytes) {
  const std::size_t wanted = BytesFor(cache_bytes);
  if (size_ < wanted) {
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, wanted)));
    size_ = memory_ ? wanted : 0;
    if (!memory_) return false;
    // Gives it pages of its own instead of one shared page of zeros.
    std::fill_n(memory_.get(), size_, std::byte{1});
  }
  return true;
}

void CacheEvictor::Evict() const {
  const volatile std::byte* const bytes = memory_.get();
  for (std::size_t i = 0; i < size_; i += kLine) static_cast<void>(bytes[i]);
}

}  // namespace loopfleet::worker
