#pragma once
// ProGraML's graph of a module, as CompilerGym 0.2.5 and programl 0.3.2 make it. Arguments and
// constants are numbered by their first use, so a module always has the same graph.

#include "common/base/result.h"
#include "common/llvm_passes/programl_graph.h"

namespace llvm {
class Module;
}

namespace loopfleet::worker {

// kFull: more than 65,536 different texts.
Result<passes::ProgramlGraph> ProgramlOf(const llvm::Module& module);

}  // namespace loopfleet::worker
