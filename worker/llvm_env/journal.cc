#include "worker/llvm_env/journal.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace loopfleet::worker {

Result<Journal> Journal::Make(std::size_t capacity) {
  void* const memory = ::mmap(nullptr, sizeof(Header) + capacity, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return Fail(ErrorKind::kSystem, fmt::format("no shared memory: {}", std::strerror(errno)));
  }
  return Journal(memory, capacity);
}

Journal::Journal(void* memory, std::size_t capacity)
    : header_(new(memory) Header),
      records_(static_cast<char*>(memory) + sizeof(Header)),
      capacity_(capacity) {}

Journal::Journal(Journal&& other) noexcept
    : header_(std::exchange(other.header_, nullptr)),
      records_(other.records_),
      capacity_(other.capacity_) {}

Journal::~Journal() {
  if (header_ != nullptr) ::munmap(header_, sizeof(Header) + capacity_);
}

bool Journal::Append(std::string_view record) {
  if (record.size() > capacity_ - records().size()) return false;
  std::memcpy(records_ + header_->size, record.data(), record.size());
  // The size grows last: a crash in between loses the record and no other.
  std::atomic_signal_fence(std::memory_order_release);
  header_->size += record.size();
  return true;
}

}  // namespace loopfleet::worker
