#include "kernel/code_area.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/unique_fd.h"

namespace loopfleet {
namespace {

constexpr std::size_t kPageBytes = 4096;

std::unexpected<Error> Refused(const char* what) {
  const int code = errno;
  return Fail(code == EACCES || code == EPERM ? ErrorKind::kSystem : ErrorKind::kUnavailable,
              fmt::format("{} for machine code: {}", what, std::strerror(code)));
}

}  // namespace

CodeArea::Block::~Block() { area_->Free(offset_, size_); }

Result<std::shared_ptr<CodeArea>> CodeArea::Create(std::size_t bytes) {
  const UniqueFd file(::memfd_create("loopfleet-code", MFD_CLOEXEC));
  if (file.get() < 0) return Refused("memfd_create");
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return Refused("ftruncate");
  void* const writable =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (writable == MAP_FAILED) return Refused("mmap to write");
  void* const executable =
      ::mmap(nullptr, bytes, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (executable == MAP_FAILED) {
    const auto refused = Refused("mmap to execute");
    ::munmap(writable, bytes);
    return refused;
  }
  return std::shared_ptr<CodeArea>(
      new CodeArea(bytes, static_cast<std::byte*>(writable), static_cast<std::byte*>(executable)));
}

CodeArea::CodeArea(std::size_t bytes, std::byte* writable, std::byte* executable)
    : bytes_(bytes), writable_(writable), executable_(executable), gaps_{{0, bytes}} {}

CodeArea::~CodeArea() {
  ::munmap(writable_, bytes_);
  ::munmap(executable_, bytes_);
}

CodeArea::Gap CodeArea::BiggestGap() const {
  const std::lock_guard lock(mutex_);
  const auto biggest =
      std::ranges::max_element(gaps_, {}, [](const auto& gap) { return gap.second; });
  if (biggest == gaps_.end()) return {};
  return {.offset = biggest->first, .size = biggest->second};
}

CodePlace CodeArea::FreePlace() const {
  const Gap gap = BiggestGap();
  return {.address = reinterpret_cast<std::uint64_t>(executable_ + gap.offset),
          .max_bytes = gap.size};
}

Result<std::unique_ptr<CodeArea::Block>> CodeArea::Write(const CodeImage& image) {
  const Gap gap = BiggestGap();
  if (image.bytes.size() > gap.size || image.entry >= image.bytes.size()) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("{} bytes of code with the entry at {} do not fit into a place of {}",
                            image.bytes.size(), image.entry, gap.size));
  }
  const std::size_t size = (image.bytes.size() + kPageBytes - 1) / kPageBytes * kPageBytes;
  {
    const std::lock_guard lock(mutex_);
    gaps_.erase(gap.offset);
    if (size < gap.size) gaps_.emplace(gap.offset + size, gap.size - size);
  }
  std::memcpy(writable_ + gap.offset, image.bytes.data(), image.bytes.size());
  auto* const code = reinterpret_cast<char*>(executable_ + gap.offset);
  __builtin___clear_cache(code, code + image.bytes.size());
  return std::make_unique<Block>(shared_from_this(), gap.offset, size,
                                 reinterpret_cast<KernelFunction>(code + image.entry));
}

void CodeArea::Free(std::size_t offset, std::size_t size) {
  const std::lock_guard lock(mutex_);
  auto [gap, is_new] = gaps_.emplace(offset, size);
  const auto next = std::next(gap);
  if (next != gaps_.end() && gap->first + gap->second == next->first) {
    gap->second += next->second;
    gaps_.erase(next);
  }
  if (gap == gaps_.begin()) return;
  const auto before = std::prev(gap);
  if (before->first + before->second == gap->first) {
    before->second += gap->second;
    gaps_.erase(gap);
  }
}

}  // namespace loopfleet
