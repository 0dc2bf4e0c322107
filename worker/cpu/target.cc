#include "worker/cpu/target.h"

#include <fmt/format.h>
#include <llvm/ADT/StringMap.h>
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
  if (isa == CpuIsa::kHost) return HostProcessor();
  const IsaSupport& support = SupportOf(isa);
  return {.triple = std::string(support.triple),
          .name = std::string(support.processor),
          .features = std::string(support.features)};
}

void InitializeTargetOf(CpuIsa isa) {
  if (SupportOf(isa).core_kernels != nullptr) {  // this architecture
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return;
  }
  llvm::InitializeAllTargetInfos();
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllAsmPrinters();
}

}  // namespace

Result<std::unique_ptr<llvm::LLVMTargetMachine>> MakeTargetMachine(CpuIsa isa) {
  InitializeTargetOf(isa);
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
      isa == CpuIsa::kWasm32 ? llvm::Reloc::Static : llvm::Reloc::PIC_, llvm::CodeModel::Small,
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

}  // namespace

VectorShape ShapeOf(CpuIsa isa) {
  VectorShape shape = SupportOf(isa).vectors;
  // WebAssembly has no stores past the caches, and runs on other hosts than this one.
  shape.cache_bytes =
      isa == CpuIsa::kWasm32 ? std::numeric_limits<std::int64_t>::max() : CacheBytes();
  return shape;
}

}  // namespace loopfleet::worker
