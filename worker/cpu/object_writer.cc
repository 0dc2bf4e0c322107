#include "worker/cpu/object_writer.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/PassRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include "common/base/check.h"

namespace loopfleet::worker {
namespace {

using llvm::CodeGenFileType;
using llvm::Pass;
using llvm::legacy::PassManager;

// LLVM's full pipeline, including IR passes. For targets without a short pipeline here.
void AddWholePipeline(llvm::LLVMTargetMachine& machine, PassManager& passes,
                      llvm::raw_pwrite_stream& out, CodeGenFileType type) {
  const bool refused =
      machine.addPassesToEmitFile(passes, out, nullptr, type, /*DisableVerify=*/true);
  LF_CHECK(!refused, "the target writes no such files");
}

Pass* PassNamed(const char* name) {
  const llvm::PassInfo* info =
      llvm::PassRegistry::getPassRegistry()->getPassInfo(llvm::StringRef(name));
  LF_CHECK(info != nullptr, "this LLVM has no pass '{}'", name);
  return info->createPass();
}

// Only the passes needed for correct x86 code. Our IR is already vectorised and unrolled, with its
// accumulators in registers, so the optimising passes would take most of the time and change
// nothing.
void AddShortX86Pipeline(llvm::LLVMTargetMachine& machine, PassManager& passes,
                         llvm::raw_pwrite_stream& out, CodeGenFileType type) {
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  llvm::TargetPassConfig* config = machine.createPassConfig(passes);
  config->setDisableVerify(true);
  passes.add(config);
  auto* functions = new llvm::MachineModuleInfoWrapperPass(&machine);
  passes.add(functions);
  const bool no_selector = config->addInstSelector();
  LF_CHECK(!no_selector, "the target selects no instructions");
  for (const llvm::AnalysisID id :
       {&llvm::FinalizeISelID, &llvm::UnreachableMachineBlockElimID, &llvm::ProcessImplicitDefsID,
        &llvm::LiveVariablesID, &llvm::PHIEliminationID, &llvm::TwoAddressInstructionPassID,
        &llvm::RegisterCoalescerID, &llvm::RAGreedyID, &llvm::VirtRegRewriterID,
        &llvm::PrologEpilogCodeInserterID, &llvm::ExpandPostRAPseudosID}) {
    passes.add(Pass::createPass(id));
  }
  passes.add(PassNamed("x86-pseudo"));
  config->setInitialized();
  const bool no_printer =
      machine.addAsmPrinter(passes, out, nullptr, type, functions->getMMI().getContext());
  LF_CHECK(!no_printer, "the target writes no such files");
  passes.add(llvm::createFreeMachineFunctionPass());
}

// Inserts vzeroupper before returns and indirect calls: the other side may use SSE instructions,
// which are slow while the upper halves of registers are in use. (An omitted pass would do this.)
void ClearUpperHalves(llvm::Module& module) {
  const auto leaves = [](const llvm::Instruction& instruction) {
    const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    return llvm::isa<llvm::ReturnInst>(instruction) || (call != nullptr && call->isIndirectCall());
  };
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block) {
        if (!leaves(instruction)) continue;
        llvm::IRBuilder<> builder(&instruction);
        builder.CreateIntrinsic(llvm::Intrinsic::x86_avx_vzeroupper, {}, {});
      }
    }
  }
}

}  // namespace

struct ObjectWriter::Pipeline {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream{bytes};
  PassManager passes;
  bool clears_upper_halves = false;
};

ObjectWriter::ObjectWriter(llvm::LLVMTargetMachine& machine, Form form)
    : pipeline_(std::make_unique<Pipeline>()) {
  const auto type =
      form == Form::kObject ? CodeGenFileType::ObjectFile : CodeGenFileType::AssemblyFile;
  if (machine.getTargetTriple().isX86()) {
    AddShortX86Pipeline(machine, pipeline_->passes, pipeline_->stream, type);
    pipeline_->clears_upper_halves = machine.getMCSubtargetInfo()->checkFeatures("+avx");
  } else {
    AddWholePipeline(machine, pipeline_->passes, pipeline_->stream, type);
  }
}

ObjectWriter::~ObjectWriter() = default;

std::string ObjectWriter::Write(llvm::Module& module) {
  pipeline_->bytes.clear();
  if (pipeline_->clears_upper_halves) ClearUpperHalves(module);
  pipeline_->passes.run(module);
  return {pipeline_->bytes.begin(), pipeline_->bytes.end()};
}

}  // namespace loopfleet::worker
