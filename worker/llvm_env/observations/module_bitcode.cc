#include "worker/llvm_env/observations/module_bitcode.h"

#include <fmt/format.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ModuleSummaryIndex.h>
#include <llvm/Support/raw_ostream.h>

#include "common/base/sha256.h"

namespace loopfleet::worker {

std::string BitcodeOf(const llvm::Module& module) {
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  llvm::WriteBitcodeToFile(module, stream);
  return bytes;
}

std::string ModuleHashOf(const llvm::Module& module) { return Sha256Of(BitcodeOf(module)); }

std::string IrSha1Of(const llvm::Module& module) {
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  llvm::ModuleHash hash{};
  llvm::WriteBitcodeToFile(module, stream, /*ShouldPreserveUseListOrder=*/false,
                           /*Index=*/nullptr, /*GenerateHash=*/true, &hash);
  std::string text;
  for (const std::uint32_t word : hash) text += fmt::format("{:08x}", word);
  return text;
}

std::string IrTextOf(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

}  // namespace loopfleet::worker
