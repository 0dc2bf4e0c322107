#pragma once
// RandomProgram: small, odd-sized programs of every kind that the language has.

#include <cstdint>

#include "common/base/random.h"
#include "common/looptree/program/program.h"

namespace loopfleet::worker {

inline constexpr std::uint64_t kProgramKinds = 17;

// A program of the kind `kind` % kProgramKinds: matrix product, two in a row, sums of positive
// products, point-wise expressions, reductions, transposition, convolutions in one and two
// dimensions, views of intermediates, unrelated parts, functions that round, guarded views of all
// sorts, comparisons, functions of the C library.
looptree::Program RandomProgram(std::uint64_t kind, SplitMix64& random);

}  // namespace loopfleet::worker
