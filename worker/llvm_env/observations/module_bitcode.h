#pragma once
// A module as bytes, and its hashes.

#include <string>

namespace llvm {
class Module;
}

namespace loopfleet::worker {

std::string BitcodeOf(const llvm::Module& module);  // without use-list orders
// The SHA-256 of BitcodeOf(module).
std::string ModuleHashOf(const llvm::Module& module);
// LLVM's own hash of a module, which it embeds for ThinLTO: 40 hexadecimal digits.
std::string IrSha1Of(const llvm::Module& module);
std::string IrTextOf(const llvm::Module& module);

}  // namespace loopfleet::worker
