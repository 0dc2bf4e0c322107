#pragma once
// CacheEvictor: takes everything out of the caches of a core by reading other memory,
// several times as large as the last cache. About 5 ms for a cache of 32 MiB.

#include <cstddef>
#include <cstdint>
#include <memory>

namespace loopfleet::worker {

class CacheEvictor {
 public:
  CacheEvictor() : memory_(nullptr, &Release) {}
  // `cache_bytes`: of the last cache; 0: not known, then a common size. Without memory for it,
  // false.
  bool Prepare(std::uint64_t cache_bytes);
  // Of the core of the calling thread, after Prepare. Several threads may do so at the same time.
  void Evict() const;

 private:
  static void Release(std::byte* memory);
  std::unique_ptr<std::byte, void (*)(std::byte*)> memory_;
  std::size_t size_ = 0;
};

}  // namespace loopfleet::worker
