#pragma once
// CSource: writes a loop tree as one self-contained C11 file that depends on nothing of loopfleet.
// For reading what a schedule does, and for running it on machines without a code generator.
//
// The file describes itself in a comment (program, loops, buffers with shapes and sizes) and
// defines one function with the calling convention of every kernel (kernel/kernel.h). It
// compiles without a warning under `cc -std=c11 -Wall -Wextra -Werror -pedantic`, keeps the loops
// in the order of the tree, each with its L number, and computes what the tree means
// (docs/LOWERING.md) in plain scalar code: no vectors, no register blocks, annotations only as
// comments.

#include <expected>
#include <string>

#include "common/job/failure.h"
#include "common/looptree/tree/loop_tree.h"
#include "kernel/kernel.h"
#include "worker/lowering/kernel_plan.h"

namespace loopfleet::worker {

struct CSourceOptions {
  std::string function = kKernelSymbol;  // name of the function: a C identifier
  PlanLimits limits;
};

// The same tree always gives the same text. LIMIT_FOOTPRINT, as in every backend.
std::expected<std::string, Failure> CSourceOf(const looptree::LoopTree& tree,
                                              const CSourceOptions& options = {});

}  // namespace loopfleet::worker
