#pragma once
// InstCount: how many instructions, blocks and functions a module has, and how many instructions of
// each opcode. Named by passes::InstCountNames.

#include <cstdint>
#include <vector>

namespace llvm {
class Module;
}

namespace loopfleet::worker {

std::vector<std::int64_t> InstCountOf(const llvm::Module& module);  // 70 numbers
// The counts of blocks, functions and opcodes, divided by that of instructions.
std::vector<float> InstCountNormOf(const llvm::Module& module);  // 69 numbers

}  // namespace loopfleet::worker
