#include "worker/cpu/target.h"

#include <fmt/format.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CodeGen.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <fstream>
#include <limits>
#include <map>
#include <string>

#include "worker/host/cache_size.h"

namespace loopfleet::worker {
namespace {

struct Processor {
  std::string triple;
  std::string name;
  std::string features;
};

Processor HostProcessor() {
  std::map<std::string, bool> sorted;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    sorted[feature.getKey().str()] = feature.getValue();
  }
  Processor host{.triple = llvm::sys::getProcessTriple(),
                 .name = llvm::sys::getHostCPUName().str(),
                 .features = ""};
  for (const auto& [feature, present] : sorted) {
    host.features +=
        fmt::format("{}{}{}", host.features.empty() ? "" : ",", present ? '+' : '-', feature);
  }
  return host;
}

Processor ProcessorOf(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kHost: break;
    case CpuIsa::kAvx512: return {llvm::sys::getProcessTriple(), "x86-64-v4", ""};
    case CpuIsa::kAvx2: return {llvm::sys::getProcessTriple(), "x86-64-v3", ""};
    case CpuIsa::kBaseline: return {llvm::sys::getProcessTriple(), "generic", ""};
    case CpuIsa::kAArch64: return {"aarch64-unknown-linux-gnu", "generic", ""};
    case CpuIsa::kWasm32: return {"wasm32-unknown-unknown", "generic", "+simd128,+bulk-memory"};
  }
  return HostProcessor();
}

}  // namespace

Result<std::unique_ptr<llvm::LLVMTargetMachine>> MakeTargetMachine(CpuIsa isa) {
  const bool is_wasm = isa == CpuIsa::kWasm32;
  if (is_wasm || isa == CpuIsa::kAArch64) {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    llvm::InitializeAllAsmPrinters();
  } else {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  }
  const Processor processor = ProcessorOf(isa);
  const std::string& triple = processor.triple;
  std::string problem;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (target == nullptr) {
    return Fail(ErrorKind::kUnavailable,
                fmt::format("LLVM has no code generator for {}: {}", triple, problem));
  }
  llvm::TargetMachine* machine = target->createTargetMachine(
      triple, processor.name, processor.features, llvm::TargetOptions(),
      is_wasm ? llvm::Reloc::Static : llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::Default, /*JIT=*/true);
  if (machine == nullptr) {
    return Fail(ErrorKind::kUnavailable,
                fmt::format("LLVM makes no machine code for {} on {}", processor.name, triple));
  }
  // All of LLVM's code generators derive from this class.
  return std::unique_ptr<llvm::LLVMTargetMachine>(static_cast<llvm::LLVMTargetMachine*>(machine));
}

namespace {

// Size of the last-level cache as sysfs reports it ("32768K"), or VectorShape's default. (On some
// processors the C library reports the sum over all cores.)
std::int64_t CacheBytes() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  std::string text;
  std::getline(file, text);
  const std::uint64_t size = ParseCacheSize(text);
  return size > 0 ? static_cast<std::int64_t>(size) : VectorShape{}.cache_bytes;
}

VectorShape InstructionsOf(const llvm::LLVMTargetMachine& machine) {
  if (machine.getTargetTriple().isWasm()) {
    return {.lanes = 4, .registers = 16, .masks = false};
  }
  if (!machine.getTargetTriple().isX86()) return {.lanes = 4, .registers = 32, .masks = false};
  const llvm::MCSubtargetInfo& subtarget = *machine.getMCSubtargetInfo();
  if (subtarget.checkFeatures("+avx512f,+avx512vl,+avx512dq,+avx512bw")) {
    return {.lanes = 16, .registers = 32, .masks = true};
  }
  if (subtarget.checkFeatures("+avx2")) return {.lanes = 8, .registers = 16, .masks = true};
  return {.lanes = 4, .registers = 16, .masks = false};
}

}  // namespace

VectorShape ShapeOf(const llvm::LLVMTargetMachine& machine) {
  VectorShape shape = InstructionsOf(machine);
  // WebAssembly has no stores past the caches, and runs on other hosts than this one.
  const bool is_wasm = machine.getTargetTriple().isWasm();
  shape.cache_bytes = is_wasm ? std::numeric_limits<std::int64_t>::max() : CacheBytes();
  return shape;
}

}  // namespace loopfleet::worker
