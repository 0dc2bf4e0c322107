#include "worker/llvm_env/observations/inst_count.h"

#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <algorithm>

namespace loopfleet::worker {
namespace {

constexpr std::size_t kOpcodes = 67;
constexpr std::size_t kTotals = 3;
static_assert(llvm::Instruction::OtherOpsEnd == kOpcodes + 1, "opcode k is counted at 2 + k");

}  // namespace

std::vector<std::int64_t> InstCountOf(const llvm::Module& module) {
  std::vector<std::int64_t> counts(kTotals + kOpcodes);
  for (const llvm::Function& function : module) {
    ++counts[2];
    for (const llvm::BasicBlock& block : function) {
      ++counts[1];
      for (const llvm::Instruction& instruction : block) {
        ++counts[0];
        ++counts[kTotals - 1 + instruction.getOpcode()];
      }
    }
  }
  return counts;
}

std::vector<float> InstCountNormOf(const llvm::Module& module) {
  const std::vector<std::int64_t> counts = InstCountOf(module);
  const auto total = static_cast<float>(std::max<std::int64_t>(counts[0], 1));
  std::vector<float> shares;
  for (std::size_t i = 1; i < counts.size(); ++i) {
    shares.push_back(static_cast<float>(counts[i]) / total);
  }
  return shares;
}

}  // namespace loopfleet::worker
