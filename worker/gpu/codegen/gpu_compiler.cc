#include "worker/gpu/codegen/gpu_compiler.h"

#include <fmt/format.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <optional>
#include <utility>

#include "common/base/check.h"
#include "worker/cpu/object_writer.h"
#include "worker/gpu/codegen/device_abi.h"
#include "worker/gpu/codegen/device_planner.h"
#include "worker/gpu/codegen/module_emitter.h"
#include "worker/lowering/annotation_effects.h"

namespace loopfleet::worker {
namespace {

constexpr const char* kTriple = "nvptx64-nvidia-cuda";
// Constants and types live as long as their context, so it is replaced regularly.
constexpr int kCompilesPerContext = 256;

// No optimisation here: the assembler of the PTX (nvJitLink or the driver) optimises it in any
// case, and takes most of the time.
Result<std::unique_ptr<llvm::LLVMTargetMachine>> MakeMachine(GpuArch arch) {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  std::string problem;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kTriple, problem);
  if (target == nullptr) {
    return Fail(ErrorKind::kUnavailable,
                fmt::format("LLVM has no code generator for {}: {}", kTriple, problem));
  }
  llvm::TargetMachine* machine =
      target->createTargetMachine(kTriple, arch.Name(), "", llvm::TargetOptions(),
                                  llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::None);
  if (machine == nullptr) {
    return Fail(ErrorKind::kUnavailable,
                fmt::format("LLVM cannot generate PTX for {}", arch.Name()));
  }
  return std::unique_ptr<llvm::LLVMTargetMachine>(static_cast<llvm::LLVMTargetMachine*>(machine));
}

}  // namespace

class GpuCompiler::Impl {
 public:
  Impl(std::unique_ptr<llvm::LLVMTargetMachine> machine, const PlanLimits& limits)
      : limits_(limits), machine_(std::move(machine)), abi_(CudaAbi()) {}

  std::expected<GpuKernel, Failure> Compile(const looptree::LoopTree& tree) {
    LF_TRY(const Emitted emitted, Emit(tree));
    // A new writer each time: the PTX printer of LLVM 19 caches shared variables by the addresses
    // of functions that no longer exist.
    ObjectWriter writer(*machine_, ObjectWriter::Form::kAssembly);
    GpuKernel kernel{.ptx = writer.Write(*emitted.module),
                     .launches = {},
                     .launch_roots = {},
                     .buffers = BufferSpecsOf(emitted.device),
                     .scratch_bytes = emitted.device.scratch_bytes,
                     .notes = AnnotationNotes(tree, emitted.effects)};
    for (std::uint32_t i = 0; i < emitted.device.stages.size(); ++i) {
      const Stage& stage = emitted.device.stages[i];
      kernel.launches.push_back(
          {.symbol = StageSymbol(i), .blocks = stage.blocks, .threads = stage.block_threads});
      kernel.launch_roots.push_back(stage.root);
    }
    return kernel;
  }

  std::expected<std::string, Failure> CompileToIr(const looptree::LoopTree& tree) {
    LF_TRY(const Emitted emitted, Emit(tree));
    std::string text;
    llvm::raw_string_ostream stream(text);
    emitted.module->print(stream, nullptr);
    return text;
  }

 private:
  struct Emitted {
    DevicePlan device;
    std::unique_ptr<llvm::Module> module;
    AnnotationEffects effects;
  };

  std::expected<Emitted, Failure> Emit(const looptree::LoopTree& tree) {
    LF_TRY(DevicePlan device, PlanDevice(tree, limits_));
    if (compiles_++ % kCompilesPerContext == 0) context_ = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>("loopfleet", *context_);
    module->setDataLayout(machine_->createDataLayout());
    module->setTargetTriple(kTriple);
    AnnotationEffects effects = EmitDevice(device, *abi_, *module);
#ifndef NDEBUG
    std::string problem;
    llvm::raw_string_ostream stream(problem);
    LF_CHECK(!llvm::verifyModule(*module, &stream), "bad IR: {}", problem);
#endif
    return Emitted{std::move(device), std::move(module), std::move(effects)};
  }

  const PlanLimits limits_;
  std::unique_ptr<llvm::LLVMTargetMachine> machine_;
  std::unique_ptr<DeviceAbi> abi_;
  std::unique_ptr<llvm::LLVMContext> context_;
  int compiles_ = 0;
};

GpuCompiler::GpuCompiler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GpuCompiler::~GpuCompiler() = default;

Result<std::unique_ptr<GpuCompiler>> GpuCompiler::Create(const GpuCompilerOptions& options) {
  LF_TRY(auto machine, MakeMachine(PtxArchFor(options.arch)));
  auto impl = std::make_unique<Impl>(std::move(machine), options.limits);
  return std::unique_ptr<GpuCompiler>(new GpuCompiler(std::move(impl)));
}

std::expected<GpuKernel, Failure> GpuCompiler::Compile(const looptree::LoopTree& tree) {
  return impl_->Compile(tree);
}

std::expected<std::string, Failure> GpuCompiler::CompileToIr(const looptree::LoopTree& tree) {
  return impl_->CompileToIr(tree);
}

CompilerFacts GpuCompilerFacts() {
  return {.llvm = LLVM_VERSION_STRING, .tier = "gpu", .revision = kGpuLoweringRevision};
}

}  // namespace loopfleet::worker
