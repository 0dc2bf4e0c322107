#pragma once
// IsaSupport: all that the worker knows of an instruction set, a row each. To add one, add its row
// and, where the portable kernels do not show what a core can do, a core_kernels_*.cc. What differs
// between architectures beyond that is in processor.h.

#include <cstdint>
#include <span>
#include <string_view>

#include "worker/isa/core_kernels.h"
#include "worker/lowering/vector_shape.h"

namespace loopfleet::worker {

// The instructions that a kernel may use. kHost: those of this processor, also beyond the widest
// set of the table that it has. The others are for people, tests and comparisons.
enum class CpuIsa : std::uint8_t { kHost, kAvx512, kAvx2, kBaseline, kAArch64, kWasm32 };

struct IsaSupport {
  CpuIsa isa = CpuIsa::kHost;
  std::string_view name;    // as in HardwareFacts::isa and --isa
  std::string_view triple;  // of code for it, as LLVM names it; so are the next two
  std::string_view processor;
  std::string_view features;
  VectorShape vectors;
  bool (*runs_here)() = nullptr;              // whether this processor and system run its code
  const CoreKernels* core_kernels = nullptr;  // null: it belongs to another architecture
};

// Every row; of one architecture the widest first.
std::span<const IsaSupport> IsaTable();

// The widest set that runs here.
const IsaSupport& HostIsa();

// The row of `isa`; of kHost HostIsa().
const IsaSupport& SupportOf(CpuIsa isa);

}  // namespace loopfleet::worker
