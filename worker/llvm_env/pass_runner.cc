#include "worker/llvm_env/pass_runner.h"

#include <llvm/ADT/Any.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/Error.h>
#include <llvm/Target/TargetMachine.h>

#include <optional>
#include <utility>

#include "worker/llvm_env/program_module.h"
#include "worker/llvm_env/x86_target.h"

namespace loopfleet::worker {

// What a pass says that it changed.
struct PassRunner::Changes {
  // Noted after each pass that a pipeline consists of, from the inside out. A pass over functions
  // may change the one that it is given, so that the pass that applies it to a module adds nothing.
  void Note(llvm::StringRef pass, const llvm::Any& unit) {
    if (const auto* function = llvm::any_cast<const llvm::Function*>(&unit)) {
      functions.insert(*function);
    } else if (llvm::any_cast<const llvm::Module*>(&unit) != nullptr) {
      anywhere |= pass != "ModuleToFunctionPassAdaptor";
    }
  }
  // Verifying a program of 1 MB takes as long as half of the passes do, and most passes change few
  // of its functions.
  std::string Verify(const llvm::Module& module) const {
    if (anywhere || functions.empty()) return VerifierMessage(module);
    for (const llvm::Function& function : module) {
      if (!functions.contains(&function)) continue;
      if (std::string message = VerifierMessage(function); !message.empty()) return message;
    }
    return {};
  }
  void Clear() {
    anywhere = false;
    functions.clear();
  }

  bool anywhere = false;
  llvm::SmallPtrSet<const llvm::Function*, 32> functions;
};

// The managers of what passes ask about a module. Registering them takes 4 to 8 % of a step of a
// program of 200 instructions, so they stay, empty, from one pass to the next.
struct PassRunner::Analyses {
  Analyses(llvm::TargetMachine* target, std::string of_triple)
      : builder(target, {}, std::nullopt, &callbacks), triple(std::move(of_triple)) {
    callbacks.registerAfterPassCallback([this](llvm::StringRef pass, const llvm::Any& unit,
                                               const llvm::PreservedAnalyses& preserved) {
      if (!preserved.areAllPreserved()) changes.Note(pass, unit);
    });
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
  }
  // The order of their destructors: the results of each refer to those of the next.
  void Clear() {
    changes.Clear();
    modules.clear();
    components.clear();
    functions.clear();
    loops.clear();
  }

  Changes changes;  // of the pass that was run last
  llvm::PassInstrumentationCallbacks callbacks;
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
  std::string message = changed ? analyses_->changes.Verify(module) : "";
  analyses_->Clear();
  if (!message.empty()) {
    return std::unexpected(
        Problem{.kind = Problem::Kind::kBrokenModule, .message = std::move(message)});
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
