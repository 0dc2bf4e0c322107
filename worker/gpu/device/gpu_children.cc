#include "worker/gpu/device/gpu_children.h"

#include <memory>

#include "common/base/check.h"
#include "worker/gpu/codegen/gpu_image.h"
#include "worker/gpu/codegen/no_driver.h"
#include "worker/gpu/device/gpu_child.h"
#include "worker/processes/compiler_child.h"
#include "worker/processes/reference_child.h"

namespace loopfleet::worker {
namespace {

// What the driver keeps in files in memory, which it shares with its own threads and, where it
// runs, NVIDIA's daemons: some MiB each. A bound, for what it takes is not documented.
constexpr std::uint64_t kDriverFileBytes = std::uint64_t{1} << 30;

// Compilers and linkers are made once, in the fork server, and copied into every child by the fork.
struct Toolchain {
  std::unique_ptr<Compiler> compiler;
  std::unique_ptr<CodeLinker> linker;
};

int RunCompiler(Channel& channel, const Toolchain& tools, const GpuChildrenOptions& options) {
  // Not in the fork server: what it forks to have the device needs the driver itself.
  if (options.assembler == GpuAssembler::kNvJitLink) {
    const Status opened = OpenNoDriver();
    LF_CHECK(opened.has_value(), "{}", opened.error().message);
    const Status forbidden = ForbidWriting();
    LF_CHECK(forbidden.has_value(), "{}", forbidden.error().message);
  }
  // The first time, nvJitLink looks at the machine it is on: it may not open files later.
  constexpr std::size_t kMost = std::size_t{64} << 20;
  const GpuKernel& known = options.canary.kernel;
  const Result<CodeImage> made = tools.linker->LinkAt(
      Encode(GpuImage{.ptx = known.ptx, .cubin = {}, .launches = known.launches}), 0, kMost);
  LF_CHECK(made.has_value(), "{}", made.error().message);
  const auto seconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(options.compile_limit).count() + 1);
  return RunCompilerChild(channel, *tools.compiler, *tools.linker,
                          {.time_limit_s = seconds, .isolation = options.isolation});
}

}  // namespace

ChildPrograms GpuChildPrograms(const GpuChildrenOptions& options) {
  auto tools = std::make_shared<Toolchain>();
  ChildPrograms programs;
  programs.prepare = [tools, backend = GpuBackend(options.arch, options.assembler)] {
    *tools = {.compiler = backend.make_compiler(), .linker = backend.make_linker()};
  };
  ChildProgram& compiler = programs.by_role[ChildRole::kCompiler];
  compiler.limits.private_bytes = options.compiler_private_bytes;
  compiler.limits.file_bytes = options.assembler == GpuAssembler::kNvJitLink ? kNoDriverBytes : 0;
  compiler.run = [tools, options](Channel& channel) {
    return RunCompiler(channel, *tools, options);
  };
  ChildProgram& reference = programs.by_role[ChildRole::kReference];
  reference.limits = {.private_bytes = options.reference_private_bytes,
                      .address_space_bytes = 2 * options.reference_private_bytes};
  reference.run = [isolation = options.isolation](Channel& channel) {
    return RunReferenceChild(channel, isolation);
  };
  // The driver maps what it wants of the device and of the host into one huge space of addresses,
  // and opens a file for each thing that it talks to.
  ChildProgram& device = programs.by_role[ChildRole::kDevice];
  device.limits = {.private_bytes = options.reference_private_bytes,
                   .address_space_bytes = std::uint64_t{1} << 46,
                   .open_files = 4096,
                   .file_bytes = kDriverFileBytes};
  device.run = [child = GpuChildOptions{.ordinal = options.ordinal,
                                        .run_limit = options.run_limit,
                                        .canary = options.canary}](Channel& channel) {
    return RunGpuChild(channel, child);
  };
  return programs;
}

}  // namespace loopfleet::worker
