#include "worker/verification/shared_memory.h"

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

constexpr std::size_t kBlockBytes = std::size_t{2} << 20;
// Larger memory exceeds the second-level cache of any core: kernels then wait for the last-level
// cache and memory.
constexpr std::size_t kMaxCollapsed = std::size_t{16} << 20;

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1
#endif

// Maps at a multiple of the block size, so that huge pages fit. MAP_FAILED like mmap.
void* MapAligned(std::size_t size, int fd) {
  void* const room = ::mmap(nullptr, size + kBlockBytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return MAP_FAILED;
  auto* const start = static_cast<std::byte*>(room);
  const std::size_t before =
      (kBlockBytes - reinterpret_cast<std::uintptr_t>(start) % kBlockBytes) % kBlockBytes;
  if (before > 0) ::munmap(start, before);
  ::munmap(start + before + size, kBlockBytes - before);
  void* const mapped =
      ::mmap(start + before, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED) ::munmap(start + before, size);
  return mapped;
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

std::size_t SharedMemory::SizeOf(std::size_t size, Pages pages) {
  if (pages == Pages::kAnywhere || size > kMaxCollapsed) return size;
  return (size + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

// Linux collapses only blocks that have a page already. One byte is enough: the huge page brings
// the rest, in 0.25 ms a block, while faulting in all small pages first takes ten times as long.
// Without a free huge page, and before Linux 6.1, pages are made one by one on first use.
void SharedMemory::CollapsePages() {
  for (std::size_t block = 0; block < bytes_.size(); block += kBlockBytes) {
    const_cast<volatile std::byte&>(bytes_[block]) = std::byte{0};
  }
  ::madvise(bytes_.data(), bytes_.size(), MADV_COLLAPSE);
}

Result<SharedMemory> SharedMemory::Create(std::size_t wanted, Pages pages) {
  const std::size_t size = SizeOf(wanted, pages);
  const bool gathers = pages == Pages::kInBlocks && size <= kMaxCollapsed;
  UniqueFd fd(::memfd_create("loopfleet", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return MemoryError("memfd_create", size);
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return MemoryError("ftruncate", size);
  // If the size could change, a child could cause a SIGBUS here.
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    return MemoryError("F_ADD_SEALS", size);
  }
  void* const address =
      gathers ? MapAligned(size, fd.get())
              : ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return MemoryError("mmap", size);
  ::madvise(address, size, MADV_HUGEPAGE);  // where the host allows it for shared memory
  static std::atomic<std::uint64_t> last_id{0};
  SharedMemory memory;
  memory.id_ = ++last_id;
  memory.fd_ = std::move(fd);
  memory.bytes_ = {static_cast<std::byte*>(address), size};
  if (gathers) memory.CollapsePages();
  return memory;
}

Status SharedMemory::SealAgainstWrites() {
  if (::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0) {
    return MemoryError("F_SEAL_FUTURE_WRITE", bytes_.size());
  }
  return {};
}

}  // namespace loopfleet::worker
