#include "worker/gpu/codegen/cubin_cache.h"

#include <utility>

namespace loopfleet::worker {

Result<Cubin> CubinCache::Assemble(std::string_view ptx, GpuArch arch) {
  Key key{.ptx = std::string(ptx), .arch = arch};
  if (const auto at = entries_.find(key); at != entries_.end()) {
    ++hits_;
    by_use_.splice(by_use_.begin(), by_use_, at->second.used);
    return at->second.cubin;
  }
  ++misses_;
  LF_TRY(Cubin cubin, assembler_.Assemble(ptx, arch));
  const std::uint64_t size = BytesOf(key, cubin);
  if (size > max_bytes_) return cubin;
  while (bytes_ + size > max_bytes_) {
    const auto oldest = entries_.find(*by_use_.back());
    bytes_ -= BytesOf(oldest->first, oldest->second.cubin);
    by_use_.pop_back();
    entries_.erase(oldest);
  }
  const auto [at, added] = entries_.emplace(std::move(key), Entry{.cubin = cubin, .used = {}});
  by_use_.push_front(&at->first);
  at->second.used = by_use_.begin();
  bytes_ += size;
  return cubin;
}

}  // namespace loopfleet::worker
