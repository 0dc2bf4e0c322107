#include "worker/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/memfd.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace loopfleet::worker {
namespace {

std::unexpected<Error> MemoryError(const char* what, std::size_t size) {
  const ErrorKind kind = errno == ENOMEM || errno == ENOSPC ? ErrorKind::kFull : ErrorKind::kSystem;
  return Fail(kind, fmt::format("{} of {} bytes: {}", what, size, std::strerror(errno)));
}

}  // namespace

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, {})), id_(other.id_) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this != &other) {
    Unmap();
    fd_ = std::move(other.fd_);
    bytes_ = std::exchange(other.bytes_, {});
    id_ = other.id_;
  }
  return *this;
}

SharedMemory::~SharedMemory() { Unmap(); }

void SharedMemory::Unmap() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  bytes_ = {};
}

Result<SharedMemory> SharedMemory::Create(std::size_t size) {
  UniqueFd fd(::memfd_create("loopfleet", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return MemoryError("memfd_create", size);
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return MemoryError("ftruncate", size);
  // A size that can change under a mapping would turn a child's mischief into a SIGBUS here.
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    return MemoryError("F_ADD_SEALS", size);
  }
  void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return MemoryError("mmap", size);
  ::madvise(address, size, MADV_HUGEPAGE);  // where the host allows it for shared memory
  static std::atomic<std::uint64_t> last_id{0};
  SharedMemory memory;
  memory.id_ = ++last_id;
  memory.fd_ = std::move(fd);
  memory.bytes_ = {static_cast<std::byte*>(address), size};
  return memory;
}

Status SharedMemory::SealAgainstOthers() {
  if (::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0) {
    return MemoryError("F_SEAL_FUTURE_WRITE", bytes_.size());
  }
  return {};
}

}  // namespace loopfleet::worker
