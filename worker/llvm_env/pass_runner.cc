#include "worker/llvm_env/pass_runner.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/Error.h>
#include <llvm/Target/TargetMachine.h>

#include "worker/llvm_env/program_module.h"
#include "worker/llvm_env/x86_target.h"

namespace loopfleet::worker {

PassRunner::PassRunner() : target_(MakeX86TargetMachine(CodeLevel::kDefault)) {}
PassRunner::~PassRunner() = default;

std::expected<bool, PassRunner::Problem> PassRunner::Run(std::string_view text,
                                                         llvm::Module& module) {
  llvm::PassBuilder builder(target_.get());
  llvm::ModulePassManager pass;
  if (llvm::Error error = builder.parsePassPipeline(pass, {text.data(), text.size()})) {
    return std::unexpected(
        Problem{.kind = Problem::Kind::kUnknownPass, .message = llvm::toString(std::move(error))});
  }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  const bool changed = !pass.run(module, modules).areAllPreserved();
  if (changed) {
    if (std::string message = VerifierMessage(module); !message.empty()) {
      return std::unexpected(
          Problem{.kind = Problem::Kind::kBrokenModule, .message = std::move(message)});
    }
  }
  return changed;
}

void AddSizeAttributes(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr(llvm::Attribute::MinSize);
    function.addFnAttr(llvm::Attribute::OptimizeForSize);
  }
}

}  // namespace loopfleet::worker
