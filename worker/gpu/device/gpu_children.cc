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

// Largest file that the device child may write, in bytes. The driver keeps memory files of some
// MiB, shared with its own threads and with NVIDIA's daemons if they run. What it needs is not
// documented.
constexpr std::uint64_t kDriverFileBytes = std::uint64_t{1} << 30;

// Compilers and linkers are made once, in the fork server, and copied into every child by the fork.
struct Toolchain {
  std::unique_ptr<Compiler> compiler;
  std::unique_ptr<CodeLinker> linker;
};

int RunCompiler(Channel& channel, const Toolchain& tools, const GpuChildrenOptions& options) {
  // Not in the fork server, because it also forks the device child, which needs the real driver.
  if (options.assembler == GpuAssembler::kNvJitLink) {
    const Status opened = OpenNoDriver();
    LF_CHECK(opened.has_value(), "{}", opened.error().message);
    const Status forbidden = ForbidWriting();
    LF_CHECK(forbidden.has_value(), "{}", forbidden.error().message);
  }
  // The first link lets nvJitLink inspect the machine: it may not open files later.
  constexpr std::size_t kMost = std::size_t{64} << 20;
  const GpuKernel& known = options.canary.kernel;
  const Result<CodeImage> made = tools.linker->LinkAt(GpuObjectOf(known), {.max_bytes = kMost});
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
  programs.prepare =
      [tools, backend = GpuBackend(options.arch, options.assembler, options.assembler_place)] {
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
  // The driver maps device and host memory into one huge address range, and opens many files.
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
