#pragma once
// The hash by which the result index finds the results that may answer a request. Hashes may
// collide: readers compare the row itself.

#include <cstdint>
#include <span>
#include <string_view>

#include "storage/record.h"

namespace loopfleet::storage {

using ResultHash = std::uint64_t;

// Covers every field that ResultKey compares for equality: all but precision and age.
ResultHash HashOf(const ResultKey& key);
ResultHash HashOf(const SubjectKey& tree, const Conditions& conditions);
// With the machine code in place of the tree.
ResultHash HashOfCode(std::string_view code_hash, const ResultKey& key);

// The same in two steps: of the conditions, then of a tree's key under them.
ResultHash HashOf(const Conditions& conditions);
ResultHash HashOf(std::span<const std::uint8_t> tree, ResultHash conditions);
ResultHash HashOfCode(std::string_view code_hash, ResultHash conditions);

}  // namespace loopfleet::storage
