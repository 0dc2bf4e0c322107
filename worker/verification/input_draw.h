#pragma once
// InputDraw: how to draw the inputs on which a program's kernels are verified and timed, so that
// wrong outputs show.

#include <cstddef>
#include <vector>

#include "common/base/random.h"
#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/program/program.h"

namespace loopfleet::worker {

// Inputs are whole numbers, so that sums and products are exact in float32 and outputs must be
// equal. They may be scaled if the program is not exact with any whole numbers.
struct InputDraw {
  int largest = 4;        // magnitudes are 1 to this
  bool positive = false;  // else either sign
  // Per input: one of this many neighbours is nonzero, and so is the last element. Zeros hide what
  // is multiplied by them, so they are used only if a sum is not exact without them.
  std::vector<std::size_t> strides;
  // A power of two. Below 1 where larger numbers overflow, and for numbers between whole ones.
  float scale = 1;
};

// The draws to try, in order, until one tells right outputs from wrong ones. With them as few
// operations as possible round.
std::vector<InputDraw> InputDrawsFor(const looptree::Program& program);

looptree::Tensor DrawInput(const InputDraw& draw, std::size_t input, std::size_t size,
                           SplitMix64& random);

}  // namespace loopfleet::worker
