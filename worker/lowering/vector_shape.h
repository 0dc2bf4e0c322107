#pragma once
// VectorShape: what the code generator has to know of an instruction set, and of the host's caches.

#include <cstdint>

namespace loopfleet::worker {

struct VectorShape {
  unsigned lanes = 4;       // float32 in one register
  unsigned registers = 16;  // of them
  bool masks = false;       // loads and stores of some lanes only
  // Of the last-level cache. What is larger had better not pass through it on its way to memory.
  std::int64_t cache_bytes = std::int64_t{32} << 20;
};

}  // namespace loopfleet::worker
