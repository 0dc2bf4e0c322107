#include "worker/gpu/codegen/no_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/unique_fd.h"

// The library built from no_driver_library.cc.
asm(R"(
  .pushsection .rodata
  .balign 16
  .hidden loopfleet_no_driver_begin
  .globl loopfleet_no_driver_begin
loopfleet_no_driver_begin:
  .incbin ")" LOOPFLEET_NO_DRIVER_LIBRARY R"("
  .hidden loopfleet_no_driver_end
  .globl loopfleet_no_driver_end
loopfleet_no_driver_end:
  .byte 0
  .popsection
)");
extern "C" {
extern const char loopfleet_no_driver_begin[];
extern const char loopfleet_no_driver_end[];
}

namespace loopfleet::worker {
namespace {

constexpr const char* kDriver = "libcuda.so.1";

std::unexpected<Error> Refused(const char* what, const char* why) {
  return Fail(
      ErrorKind::kSystem,
      fmt::format("a library in the place of {} cannot be opened: {}: {}", kDriver, what, why));
}

}  // namespace

Status OpenNoDriver() {
  if (::dlopen(kDriver, RTLD_NOW | RTLD_NOLOAD) != nullptr) {
    return Fail(ErrorKind::kInvalid, fmt::format("{} is open in this process already", kDriver));
  }
  const UniqueFd file(::memfd_create(kDriver, MFD_CLOEXEC));
  if (file.get() < 0) return Refused("memfd_create", std::strerror(errno));
  for (const char* at = loopfleet_no_driver_begin; at != loopfleet_no_driver_end;) {
    const auto left = static_cast<std::size_t>(loopfleet_no_driver_end - at);
    const ssize_t written = ::write(file.get(), at, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Refused("write", std::strerror(errno));
    at += written;
  }
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  void* const opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) return Refused("dlopen", ::dlerror());
  if (::dlopen(kDriver, RTLD_NOW | RTLD_NOLOAD) != opened) {
    return Refused("dlopen", "it is not found by that name");
  }
  return {};
}

}  // namespace loopfleet::worker
