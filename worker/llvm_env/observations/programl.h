#pragma once
// ProGraML's graph of a module, as CompilerGym 0.2.5 and programl 0.3.2 make it. Arguments and
// constants are numbered by their first use, so a module always has the same graph.

#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/llvm_passes/programl_graph.h"

namespace llvm {
class Module;
}

namespace loopfleet::worker {

// kFull: more than 65,536 different texts. `full_texts`, if not null, becomes ProGraML's feature of
// that name: of each node what LLVM prints for its instruction, value or constant; "" where there
// is none.
Result<passes::ProgramlGraph> ProgramlOf(const llvm::Module& module,
                                         std::vector<std::string>* full_texts = nullptr);

}  // namespace loopfleet::worker
