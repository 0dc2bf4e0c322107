#include "worker/isa/isa_support.h"

#include <algorithm>
#include <array>

#include "common/base/check.h"

namespace loopfleet::worker {
namespace {

bool Never() { return false; }
bool Always() { return true; }

// Rows of another architecture name no kernels: they are not in this program.
#if defined(__x86_64__)
bool HasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
constexpr bool (*kBaselineRuns)() = Always;
constexpr bool (*kAArch64Runs)() = Never;
constexpr const CoreKernels* kAvx512Kernels = &core_kernels::kAvx512;
constexpr const CoreKernels* kAvx2Kernels = &core_kernels::kAvx2;
constexpr const CoreKernels* kBaselineKernels = &core_kernels::kPortable;
constexpr const CoreKernels* kAArch64Kernels = nullptr;
#elif defined(__aarch64__)
constexpr bool (*HasAvx512)() = Never;
constexpr bool (*HasAvx2)() = Never;
constexpr bool (*kBaselineRuns)() = Never;
constexpr bool (*kAArch64Runs)() = Always;
constexpr const CoreKernels* kAvx512Kernels = nullptr;
constexpr const CoreKernels* kAvx2Kernels = nullptr;
constexpr const CoreKernels* kBaselineKernels = nullptr;
constexpr const CoreKernels* kAArch64Kernels = &core_kernels::kPortable;
#endif

constexpr const char* kX86Triple = "x86_64-pc-linux-gnu";

constexpr std::array kTable = {
    IsaSupport{.isa = CpuIsa::kAvx512,
               .name = "avx512",
               .triple = kX86Triple,
               .processor = "x86-64-v4",
               .features = "",
               .vectors = {.lanes = 16, .registers = 32, .masks = true, .fuses = true},
               .runs_here = HasAvx512,
               .core_kernels = kAvx512Kernels},
    IsaSupport{.isa = CpuIsa::kAvx2,
               .name = "avx2",
               .triple = kX86Triple,
               .processor = "x86-64-v3",
               .features = "",
               .vectors = {.lanes = 8, .registers = 16, .masks = true, .fuses = true},
               .runs_here = HasAvx2,
               .core_kernels = kAvx2Kernels},
    IsaSupport{.isa = CpuIsa::kBaseline,
               .name = "baseline",
               .triple = kX86Triple,
               .processor = "generic",
               .features = "",
               .vectors = {.lanes = 4, .registers = 16, .masks = false},
               .runs_here = kBaselineRuns,
               .core_kernels = kBaselineKernels},
    // Its vector set that every processor has (NEON).
    IsaSupport{.isa = CpuIsa::kAArch64,
               .name = "aarch64",
               .triple = "aarch64-unknown-linux-gnu",
               .processor = "generic",
               .features = "",
               .vectors = {.lanes = 4, .registers = 32, .masks = false, .fuses = true},
               .runs_here = kAArch64Runs,
               .core_kernels = kAArch64Kernels},
    IsaSupport{.isa = CpuIsa::kWasm32,
               .name = "wasm32",
               .triple = "wasm32-unknown-unknown",
               .processor = "generic",
               .features = "+simd128,+bulk-memory",
               .vectors = {.lanes = 4, .registers = 16, .masks = false},
               .runs_here = Never,
               .core_kernels = nullptr},
};

}  // namespace

std::span<const IsaSupport> IsaTable() { return kTable; }

const IsaSupport& HostIsa() {
  static const IsaSupport& widest =
      *std::ranges::find_if(kTable, [](const IsaSupport& row) { return row.runs_here(); });
  return widest;
}

const IsaSupport& SupportOf(CpuIsa isa) {
  if (isa == CpuIsa::kHost) return HostIsa();
  const auto* const row = std::ranges::find(kTable, isa, &IsaSupport::isa);
  LF_CHECK(row != kTable.end(), "instruction set {}", static_cast<int>(isa));
  return *row;
}

}  // namespace loopfleet::worker
