#pragma once
// Runs a kernel on buffers between guards and reports what it did wrong: results that differ from a
// reference, or writes to its inputs or to memory round a buffer.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/looptree/interpreter/interpret.h"
#include "common/looptree/tree/loop_tree.h"
#include "kernel/kernel.h"

namespace loopfleet::worker {

// Small integers, so that sums and products are exact in float32.
std::vector<looptree::Tensor> SmallIntegers(const looptree::Program& program, std::uint64_t seed);

// Runs with outputs and scratch full of NaN; returns the outputs. Appends to `problems`. `behind`
// is passed after the last buffer, where kernels for several threads expect their pool.
std::vector<looptree::Tensor> RunGuarded(KernelFunction function,
                                         const std::vector<BufferSpec>& buffers,
                                         const std::vector<looptree::Tensor>& inputs,
                                         std::string& problems, const void* behind = nullptr);

// The first element whose difference from the reference exceeds its tolerance; "": none.
std::string Difference(const std::vector<looptree::Tensor>& outputs,
                       const looptree::Reference& reference);

// The same against another float32 result of the same program, which may be as far off itself.
std::string Difference(const std::vector<looptree::Tensor>& outputs,
                       const std::vector<looptree::Tensor>& other,
                       const looptree::Reference& reference);

}  // namespace loopfleet::worker
