#pragma once
// Autophase: 56 numbers about a module, as CompilerGym counts them. Named by
// passes::AutophaseNames.

#include <cstdint>
#include <vector>

namespace llvm {
class Module;
}

namespace loopfleet::worker {

std::vector<std::int64_t> AutophaseOf(const llvm::Module& module);

}  // namespace loopfleet::worker
