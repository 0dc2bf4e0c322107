#pragma once
// InputDraw: how to draw the inputs on which a program's kernels are verified and timed, so that
// wrong outputs show.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/random.h"
#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/program/program.h"

namespace loopfleet::worker {

enum class InputNumbers : std::uint8_t {
  kWhole,      // as exact as the program allows: outputs show each wrong, missing or double term
  kFractions,  // of 22 bits: outputs show kernels that are right for whole numbers only
};

// What the inputs of a program are drawn from.
struct InputSeed {
  std::uint64_t value = 0;
  InputNumbers numbers = InputNumbers::kWhole;
  bool operator==(const InputSeed&) const = default;
};

// Inputs are whole numbers, so that sums and products are exact in float32 and outputs must be
// equal. They are large if all of the program is exact with them: of small numbers, the extremes of
// many are the same. They may be scaled if the program is not exact with any whole numbers.
struct InputDraw {
  int largest = 4;        // magnitudes are 1 to this
  bool positive = false;  // else either sign
  // Half of the magnitudes are 1 to 4 whatever the largest: some elements are equal, and some are
  // on either side of any threshold.
  bool mixed = false;
  // Per input: one of this many neighbours is nonzero, and so is the last element. Zeros hide what
  // is multiplied by them, so they are used only if a sum is not exact without them.
  std::vector<std::size_t> strides;
  // A power of two. Below 1 where larger numbers overflow, and for numbers between whole ones.
  float scale = 1;
  float centre = 0;  // added to each; 1: products of many neither overflow nor vanish
};

// The draws to try, in order, until one tells right outputs from wrong ones. With whole numbers as
// few operations as possible round.
std::vector<InputDraw> InputDrawsFor(const looptree::Program& program, InputNumbers numbers);

looptree::Tensor DrawInput(const InputDraw& draw, std::size_t input, std::size_t size,
                           SplitMix64& random);

}  // namespace loopfleet::worker
