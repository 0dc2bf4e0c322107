#pragma once
// The one processor that every pass and every object file is made for: x86-64 without features,
// position-independent. Never the host's: results are shared between workers.

#include <memory>

namespace llvm {
class TargetMachine;
}

namespace loopfleet::worker {

inline constexpr const char* kX86Triple = "x86_64-pc-linux-gnu";

enum class CodeLevel {
  kNone,     // as `clang -c` without -O
  kDefault,  // as -O2
};

// Registers LLVM's x86 code generator. Called once, before any fork.
void InitializeX86();
std::unique_ptr<llvm::TargetMachine> MakeX86TargetMachine(CodeLevel level);

}  // namespace loopfleet::worker
