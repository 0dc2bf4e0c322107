#include "worker/verification/guarded_buffers.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "common/base/check.h"

namespace loopfleet::worker {

namespace {

std::uint64_t NewId() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

GuardedBuffers::GuardedBuffers(SharedMemory memory, BufferLayout layout)
    : memory_(std::move(memory)), layout_(std::move(layout)), id_(NewId()) {}

void GuardedBuffers::SetLayout(const BufferLayout& layout) {
  LF_CHECK(layout.size <= memory_.bytes().size(), "{} bytes into {}", layout.size,
           memory_.bytes().size());
  layout_ = layout;
  id_ = NewId();
}

void GuardedBuffers::Poison() {
  for (const PlacedBuffer& buffer : layout_.buffers) {
    const PlacedBuffer pages = PagesOf(buffer);
    worker::Poison(memory_.bytes().subspan(pages.offset, pages.size));
  }
}

std::optional<Failure> GuardedBuffers::FindOverrun() const {
  for (const PlacedBuffer& buffer : layout_.buffers) {
    const PlacedBuffer pages = PagesOf(buffer);
    const auto bytes = memory_.bytes();
    if (!IsAllPoison(bytes.subspan(pages.offset, buffer.offset - pages.offset)) ||
        !IsAllPoison(bytes.subspan(buffer.end(), pages.end() - buffer.end()))) {
      return Failure{.code = FailureCode::kWrongOutput,
                     .message = "the kernel wrote outside its buffers"};
    }
  }
  return std::nullopt;
}

std::expected<void, Failure> GuardedBuffers::Check(std::span<const ExpectedTensor> expected) const {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const PlacedBuffer& buffer = layout_.buffers[i];
    const std::span<const float> got(
        reinterpret_cast<const float*>(memory_.bytes().data() + buffer.offset),
        buffer.size / sizeof(float));
    if (const auto mismatch = Compare(got, expected[i])) {
      return std::unexpected(
          Failure{.code = FailureCode::kWrongOutput, .message = Describe(i, *mismatch)});
    }
  }
  if (std::optional<Failure> failure = FindOverrun()) return std::unexpected(*std::move(failure));
  return {};
}

namespace {

constexpr auto kArenaPages = SharedMemory::Pages::kInBlocks;

std::size_t MemoryOf(const BufferLayout& layout) {
  return SharedMemory::SizeOf(layout.size, kArenaPages);
}

}  // namespace

Result<std::shared_ptr<GuardedBuffers>> GuardedBufferPool::Take(const BufferLayout& layout) {
  const std::size_t size = MemoryOf(layout);
  std::unique_ptr<GuardedBuffers> arena;
  {
    std::unique_lock lock(mutex_);
    const std::uint64_t ticket = tickets_++;
    returned_.wait(lock, [&] {
      return ticket == first_in_line_ &&
             (used_bytes_ == 0 || used_bytes_ + size <= options_.max_bytes);
    });
    ++first_in_line_;
    returned_.notify_all();
    used_bytes_ += size;
    arena = TakeIdle(layout);
  }
  if (!arena) {
    Result<SharedMemory> memory = SharedMemory::Create(layout.size, kArenaPages);
    if (!memory) {
      std::lock_guard lock(mutex_);
      used_bytes_ -= size;
      returned_.notify_all();
      return std::unexpected(std::move(memory).error());
    }
    arena = std::make_unique<GuardedBuffers>(*std::move(memory), layout);
  }
  return std::shared_ptr<GuardedBuffers>(arena.release(), [this](GuardedBuffers* used) {
    GiveBack(std::unique_ptr<GuardedBuffers>(used));
  });
}

std::size_t GuardedBufferPool::CountWaiting() const {
  std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(tickets_ - first_in_line_);
}

std::unique_ptr<GuardedBuffers> GuardedBufferPool::TakeIdle(const BufferLayout& layout) {
  const std::size_t size = MemoryOf(layout);
  auto found =
      std::ranges::find_if(idle_, [&](const auto& arena) { return arena->layout() == layout; });
  const bool is_laid_out = found != idle_.end();
  if (!is_laid_out) {
    // The least recently used: the others are more likely to be wanted as they are.
    const auto fits = [&](const auto& arena) { return MemoryOf(arena->layout()) == size; };
    const auto last = std::find_if(idle_.rbegin(), idle_.rend(), fits);
    if (last == idle_.rend()) return nullptr;
    found = std::prev(last.base());
  }
  std::unique_ptr<GuardedBuffers> arena = std::move(*found);
  idle_.erase(found);
  idle_bytes_ -= size;
  if (!is_laid_out) arena->SetLayout(layout);
  return arena;
}

void GuardedBufferPool::GiveBack(std::unique_ptr<GuardedBuffers> arena) {
  std::list<std::unique_ptr<GuardedBuffers>> dropped;  // unmapped after the lock is released
  std::lock_guard lock(mutex_);
  const std::size_t size = MemoryOf(arena->layout());
  used_bytes_ -= size;
  idle_bytes_ += size;
  idle_.push_front(std::move(arena));
  while (idle_bytes_ > options_.max_idle_bytes) {
    idle_bytes_ -= MemoryOf(idle_.back()->layout());
    dropped.splice(dropped.end(), idle_, std::prev(idle_.end()));
  }
  returned_.notify_all();
}

}  // namespace loopfleet::worker
