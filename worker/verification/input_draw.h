#pragma once
// InputDraw: how the inputs that a program's kernels are verified and timed on are drawn: so that
// what is wrong shows.

#include <cstddef>
#include <vector>

#include "common/base/random.h"
#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/program/program.h"

namespace loopfleet::worker {

// Whole numbers, so that sums and products are exact in float32 and only equality will do; of
// programs that are not exact with any, perhaps scaled.
struct InputDraw {
  int largest = 4;        // magnitudes are 1 to this
  bool positive = false;  // else either sign
  // Per input: of so many neighbours one is not 0, and neither is the last of all. Zeros hide what
  // is multiplied by them, so there are none unless a sum is exact with them only.
  std::vector<std::size_t> strides;
  float scale = 1;  // times this, a power of two: where larger numbers overflow
};

// In the order in which they are to be tried, until one tells right outputs from wrong ones: the
// first ones leave as few operations as possible that may round.
std::vector<InputDraw> InputDrawsFor(const looptree::Program& program);

looptree::Tensor DrawInput(const InputDraw& draw, std::size_t input, std::size_t size,
                           SplitMix64& random);

}  // namespace loopfleet::worker
