#pragma once
// Keys of trees that no program has, one for each row of a synthetic store.

#include <cstddef>
#include <cstdint>

#include "common/base/random.h"
#include "common/looptree/tree/key.h"

namespace loopfleet::bench {

inline looptree::TreeKey UniqueTree(std::uint64_t row) {
  looptree::TreeKey key;
  SplitMix64 random(row);
  for (std::size_t i = 0; i < key.bytes.size(); i += 8) {
    const std::uint64_t word = random.Next();
    for (std::size_t j = 0; j < 8; ++j) key.bytes[i + j] = static_cast<std::uint8_t>(word >> 8 * j);
  }
  return key;
}

}  // namespace loopfleet::bench
