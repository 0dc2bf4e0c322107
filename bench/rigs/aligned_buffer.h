#pragma once
// Buffer: float32 elements aligned to 64 bytes, as kernel/kernel.h requires. Large ones lie
// in huge pages, as a worker's do.

#include <cstdint>
#include <memory>

namespace loopfleet::bench {

struct FreeMemory {
  void operator()(float* memory) const;
};
using Buffer = std::unique_ptr<float[], FreeMemory>;

// Every element is `value`, so every page is resident.
Buffer MakeBuffer(std::uint64_t element_count, float value);

}  // namespace loopfleet::bench
