#pragma once
// Buffer: float32 on a multiple of 64 bytes, as worker/backend/kernel.h asks, in huge pages where
// it is large, as a worker's are.

#include <cstdint>
#include <memory>

namespace loopfleet::bench {

struct FreeMemory {
  void operator()(float* memory) const;
};
using Buffer = std::unique_ptr<float[], FreeMemory>;

// Every element is `value`, so every page is there.
Buffer MakeBuffer(std::uint64_t element_count, float value);

}  // namespace loopfleet::bench
