#pragma once
// Runs a kernel on buffers between guards and says what, if anything, is wrong with what it did:
// results against a reference, inputs and the memory round every buffer untouched.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/tree/loop_tree.h"
#include "worker/backend/kernel.h"

namespace loopfleet::worker {

// Small integers, so that sums and products are exact in float32.
std::vector<looptree::Tensor> SmallIntegers(const looptree::Program& program, std::uint64_t seed);

// Outputs of a run that starts from outputs and scratch full of NaN. Appends to `problems`.
// `behind` stands behind the last buffer, where kernels for several threads look for their pool.
std::vector<looptree::Tensor> RunGuarded(KernelFunction function,
                                         const std::vector<BufferSpec>& buffers,
                                         const std::vector<looptree::Tensor>& inputs,
                                         std::string& problems, const void* behind = nullptr);

// The first element that is further from the reference than it allows; "" if there is none.
std::string Difference(const std::vector<looptree::Tensor>& outputs,
                       const looptree::Reference& reference);

// The same against another float32 result of the same program, which may be as far off itself.
std::string Difference(const std::vector<looptree::Tensor>& outputs,
                       const std::vector<looptree::Tensor>& other,
                       const looptree::Reference& reference);

}  // namespace loopfleet::worker
