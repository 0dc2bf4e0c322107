#pragma once
// The hash by which the result index finds the results that may answer a question. It only says
// where to look: readers compare the row itself.

#include <cstdint>
#include <span>

#include "storage/record.h"

namespace loopfleet::storage {

using ResultHash = std::uint64_t;

// Of every field that ResultKey compares for equality: all but how precise and how new it must be.
ResultHash HashOf(const ResultKey& key);
ResultHash HashOf(const looptree::TreeKey& tree, const Conditions& conditions);

// The same in two steps: of conditions, and of a tree's key under these.
ResultHash HashOf(const Conditions& conditions);
ResultHash HashOf(std::span<const std::uint8_t> tree, ResultHash conditions);

}  // namespace loopfleet::storage
