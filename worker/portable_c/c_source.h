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

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "common/job/failure.h"
#include "common/looptree/tree/loop_tree.h"
#include "kernel/kernel.h"
#include "worker/lowering/kernel_plan.h"

namespace loopfleet::worker {

struct CSourceOptions {
  std::string function = kKernelSymbol;  // name of the function: a C identifier
  PlanLimits limits;
};

struct CSource {
  // Of a node of the tree, counted from 0; nullopt: the text has no such line.
  struct Lines {
    std::optional<std::size_t> node;   // the loop's head, or the operation
    std::optional<std::size_t> start;  // where the operation's accumulators are set to their start
  };
  std::string text;
  std::vector<Lines> lines;  // by looptree::TreeRef
};

// The same tree always gives the same text. LIMIT_FOOTPRINT, as in every backend.
std::expected<CSource, Failure> CSourceOf(const looptree::LoopTree& tree,
                                          const CSourceOptions& options = {});

}  // namespace loopfleet::worker
