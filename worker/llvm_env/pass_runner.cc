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

#include <utility>

#include "worker/llvm_env/program_module.h"
#include "worker/llvm_env/x86_target.h"

namespace loopfleet::worker {

// The managers of what passes ask about a module. Registering them takes 4 to 8 % of a step of a
// program of 200 instructions, so they stay, empty, from one pass to the next.
struct PassRunner::Analyses {
  Analyses(llvm::TargetMachine* target, std::string of_triple)
      : builder(target), triple(std::move(of_triple)) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
  }
  // The order of their destructors: the results of each refer to those of the next.
  void Clear() {
    modules.clear();
    components.clear();
    functions.clear();
    loops.clear();
  }

  llvm::PassBuilder builder;
  std::string triple;  // the analysis of library functions keeps that of the first module
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
};

PassRunner::PassRunner() : target_(MakeX86TargetMachine(CodeLevel::kDefault)) {}
PassRunner::~PassRunner() = default;

std::expected<bool, PassRunner::Problem> PassRunner::Run(std::string_view text,
                                                         llvm::Module& module) {
  if (!analyses_ || analyses_->triple != module.getTargetTriple()) {
    analyses_ = std::make_unique<Analyses>(target_.get(), module.getTargetTriple());
  }
  llvm::ModulePassManager pass;
  if (llvm::Error error = analyses_->builder.parsePassPipeline(pass, {text.data(), text.size()})) {
    return std::unexpected(
        Problem{.kind = Problem::Kind::kUnknownPass, .message = llvm::toString(std::move(error))});
  }
  const bool changed = !pass.run(module, analyses_->modules).areAllPreserved();
  analyses_->Clear();
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
