#pragma once
// VectorShape: what a code generator has to know about an instruction set and about the host's
// caches.

#include <cstdint>

namespace loopfleet::worker {

struct VectorShape {
  unsigned lanes = 4;       // float32 in one register
  unsigned registers = 16;  // vector registers
  bool masks = false;       // loads and stores of some lanes only
  bool fuses = false;       // multiplies and adds in one instruction, with one rounding
  // Size of the last-level cache, in bytes. Larger data should bypass it on its way to memory.
  std::int64_t cache_bytes = std::int64_t{32} << 20;
};

}  // namespace loopfleet::worker
