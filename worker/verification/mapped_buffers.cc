#include "worker/verification/mapped_buffers.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace loopfleet::worker {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
// Unmapped, on either side. Costs only address space.
constexpr std::size_t kGuardSpaceBytes = std::size_t{1} << 30;
// All views have the same low address bits: at random ones a kernel was up to 1.3 times as slow in
// one place as in another (docs/research/timing_experiments.md), most likely because AMD's caches
// guess by a hash of bits 12 to 27 where data is. What is written is kept apart from what is read,
// as bit 24 is in that hash; that this gains anything was not seen. Both are multiples of huge
// pages, so that the host can use them.
constexpr std::size_t kPlaceBytes = std::size_t{1} << 30;
constexpr std::size_t kWrittenOffset = std::size_t{1} << 24;

// Up to this size a buffer is mapped with all its pages: one call is cheaper than a fault for each,
// and no fault falls into a timed run.
constexpr std::size_t kPopulatedBytes = std::size_t{4} << 20;

int ProtectionOf(MappedBuffers::Access access) {
  switch (access) {
    case MappedBuffers::Access::kNone: return PROT_NONE;
    case MappedBuffers::Access::kReadOnly: return PROT_READ;
    case MappedBuffers::Access::kReadWrite: return PROT_READ | PROT_WRITE;
  }
  return PROT_NONE;
}

std::unexpected<Error> MapError(std::size_t size) {
  const ErrorKind kind = errno == ENOMEM ? ErrorKind::kFull : ErrorKind::kSystem;
  return Fail(kind, fmt::format("mmap of {} bytes: {}", size, std::strerror(errno)));
}

}  // namespace

MappedBuffers::MappedBuffers(MappedBuffers&& other) noexcept
    : pages_(std::exchange(other.pages_, {})),
      start_(std::exchange(other.start_, nullptr)),
      size_(other.size_),
      buffers_(std::exchange(other.buffers_, {})) {}

MappedBuffers& MappedBuffers::operator=(MappedBuffers&& other) noexcept {
  if (this != &other) {
    Unmap();
    pages_ = std::exchange(other.pages_, {});
    start_ = std::exchange(other.start_, nullptr);
    size_ = other.size_;
    buffers_ = std::exchange(other.buffers_, {});
  }
  return *this;
}

MappedBuffers::~MappedBuffers() { Unmap(); }

void MappedBuffers::Unmap() {
  if (start_ != nullptr) ::munmap(start_, size_);
  start_ = nullptr;
}

bool MappedBuffers::SetAccess(Access access) {
  return std::ranges::all_of(pages_, [&](const std::span<std::byte> pages) {
    return pages.empty() || ::mprotect(pages.data(), pages.size(), ProtectionOf(access)) == 0;
  });
}

Result<MappedBuffers> MappedBuffers::Map(int fd, std::size_t size,
                                         std::span<const PlacedBuffer> buffers, Access access) {
  MappedBuffers mapped;
  mapped.size_ = size + 2 * kGuardSpaceBytes + kPlaceBytes + kWrittenOffset;
  void* const room =
      ::mmap(nullptr, mapped.size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return MapError(size);
  mapped.start_ = static_cast<std::byte*>(room);
  std::byte* base = mapped.start_ + kGuardSpaceBytes;
  base += kPlaceBytes - reinterpret_cast<std::uintptr_t>(base) % kPlaceBytes;
  if (access != Access::kReadOnly) base += kWrittenOffset;
  const int protection = ProtectionOf(access);
  for (const PlacedBuffer& buffer : buffers) {
    const PlacedBuffer pages = PagesOf(buffer);
    if (buffer.end() < buffer.offset || buffer.end() > size || pages.end() > size) {
      return Fail(ErrorKind::kInvalid, "a buffer lies outside its memory");
    }
    const int populate = pages.size <= kPopulatedBytes ? MAP_POPULATE : 0;
    if (pages.size > 0 &&
        ::mmap(base + pages.offset, pages.size, protection, MAP_SHARED | MAP_FIXED | populate, fd,
               static_cast<off_t>(pages.offset)) == MAP_FAILED) {
      return MapError(pages.size);
    }
    if (pages.size >= kHugePageBytes) ::madvise(base + pages.offset, pages.size, MADV_HUGEPAGE);
    mapped.pages_.emplace_back(base + pages.offset, pages.size);
    mapped.buffers_.emplace_back(base + buffer.offset, buffer.size);
  }
  return mapped;
}

}  // namespace loopfleet::worker
