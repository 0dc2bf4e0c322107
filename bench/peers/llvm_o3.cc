#include "bench/peers/llvm_o3.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <chrono>
#include <utility>

namespace loopfleet::bench {

struct LlvmO3::State {
  std::unique_ptr<llvm::TargetMachine> machine;
};

LlvmO3::LlvmO3(std::unique_ptr<State> state) : state_(std::move(state)) {}
LlvmO3::LlvmO3(LlvmO3&&) noexcept = default;
LlvmO3::~LlvmO3() = default;

Result<LlvmO3> LlvmO3::Create() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  const std::string triple = llvm::sys::getProcessTriple();
  std::string problem;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (target == nullptr) return Fail(ErrorKind::kUnavailable, problem);
  std::string features;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    features += (features.empty() ? "" : ",") + std::string(feature.getValue() ? "+" : "-") +
                feature.getKey().str();
  }
  auto state = std::make_unique<State>();
  state->machine.reset(target->createTargetMachine(
      triple, llvm::sys::getHostCPUName(), features, llvm::TargetOptions(), llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive, /*JIT=*/true));
  return LlvmO3(std::move(state));
}

Result<double> LlvmO3::Compile(const std::string& ir) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  const std::unique_ptr<llvm::Module> module =
      llvm::parseIR(llvm::MemoryBufferRef(ir, "kernel"), diagnostic, context);
  if (module == nullptr) return Fail(ErrorKind::kInvalid, diagnostic.getMessage().str());
  const auto start = std::chrono::steady_clock::now();
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(state_->machine.get());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(*module, modules);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (state_->machine->addPassesToEmitFile(passes, stream, nullptr,
                                           llvm::CodeGenFileType::ObjectFile)) {
    return Fail(ErrorKind::kUnavailable, "the target writes no object files");
  }
  passes.run(*module);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace loopfleet::bench
