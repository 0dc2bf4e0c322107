#pragma once
// GpuChildren: the child programs of a GPU worker and their confinement. Compiler and reference
// children are isolated from the host as on a CPU worker, and from the driver too. One device child
// may use the driver.

#include <chrono>
#include <cstdint>
#include <string>

#include "worker/gpu/codegen/gpu_backend.h"
#include "worker/gpu/device/gpu_canary.h"
#include "worker/sandbox/fork_server.h"
#include "worker/sandbox/syscall_filter.h"

namespace loopfleet::worker {

struct GpuChildrenOptions {
  int ordinal = 0;
  GpuArch arch;
  GpuAssembler assembler = GpuAssembler::kDriver;
  std::string assembler_place;  // GpuProbe::assembler_place
  GpuCanary canary;             // with the code that the device loads
  Isolation isolation = Isolation::kSeccomp;
  std::chrono::milliseconds run_limit{10'000};
  std::chrono::milliseconds compile_limit{2'000};
  std::uint64_t compiler_private_bytes = std::uint64_t{2} << 30;
  std::uint64_t reference_private_bytes = std::uint64_t{16} << 30;
};

ChildPrograms GpuChildPrograms(const GpuChildrenOptions& options);

}  // namespace loopfleet::worker
