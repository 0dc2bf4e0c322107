#include "worker/verification/code_arena.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::worker {
namespace {

std::unexpected<Error> Refused(const char* what) {
  return Fail(ErrorKind::kSystem,
              fmt::format("{} for the code arena: {}", what, std::strerror(errno)));
}

}  // namespace

CodeArena::Place::Place(Place&& other) noexcept
    : arena_(std::exchange(other.arena_, nullptr)), number_(other.number_) {}

CodeArena::Place::~Place() {
  if (arena_ == nullptr) return;
  std::lock_guard lock(arena_->mutex_);
  arena_->free_.push_back(number_);
  arena_->returned_.notify_one();
}

std::uint64_t CodeArena::Place::address() const {
  return reinterpret_cast<std::uint64_t>(arena_->reserved_) + number_ * size();
}

std::size_t CodeArena::Place::size() const { return arena_->options_.place_bytes; }

Result<std::uint64_t> CodeArena::Place::Write(const CodeImage& image) {
  if (image.bytes.size() > size() || image.entry >= image.bytes.size()) {
    return Fail(ErrorKind::kInvalid,
                fmt::format("{} bytes of code with the entry at {} do not fit into a place of {}",
                            image.bytes.size(), image.entry, size()));
  }
  std::byte* const start = arena_->writable_.bytes().data() + number_ * size();
  std::memcpy(start, image.bytes.data(), image.bytes.size());
  auto* const code = reinterpret_cast<char*>(start);
  __builtin___clear_cache(code, code + image.bytes.size());
  return address() + image.entry;
}

CodeArena::CodeArena(const Options& options, SharedMemory writable, void* reserved)
    : options_(options), writable_(std::move(writable)), reserved_(reserved) {
  for (std::uint32_t place = 0; place < options.places; ++place) free_.push_back(place);
}

Result<std::unique_ptr<CodeArena>> CodeArena::Create(const Options& options) {
  const std::size_t size = options.places * options.place_bytes;
  LF_TRY(SharedMemory writable, SharedMemory::Create(size));
  LF_TRY_VOID(writable.SealAgainstWrites());
  void* const reserved =
      ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return Refused("mmap");
  return std::unique_ptr<CodeArena>(new CodeArena(options, std::move(writable), reserved));
}

CodeArena::~CodeArena() { ::munmap(reserved_, size()); }

Status CodeArena::MakeExecutable() {
  if (::mmap(reserved_, size(), PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, writable_.fd(), 0) ==
      MAP_FAILED) {
    return Refused("mmap to execute");
  }
  writable_ = {};
  return {};
}

CodeArena::Place CodeArena::Take() {
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [&] { return !free_.empty(); });
  const std::uint32_t number = free_.back();
  free_.pop_back();
  return Place(*this, number);
}

}  // namespace loopfleet::worker
