#include "worker/llvm_env/x86_target.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CodeGen.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <string>

#include "common/base/check.h"

namespace loopfleet::worker {

void InitializeX86() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86AsmParser();  // inline assembly
}

std::unique_ptr<llvm::TargetMachine> MakeX86TargetMachine(CodeLevel level) {
  std::string problem;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kX86Triple, problem);
  LF_CHECK(target != nullptr, "LLVM has no x86 code generator: {}", problem);
  const auto codegen_level =
      level == CodeLevel::kNone ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(kX86Triple, "x86-64", "", llvm::TargetOptions(),
                                  llvm::Reloc::PIC_, std::nullopt, codegen_level));
}

}  // namespace loopfleet::worker
