#include "worker/arena.h"

#include <algorithm>
#include <utility>

namespace loopfleet::worker {

Arena::Arena(SharedMemory memory, BufferLayout layout)
    : memory_(std::move(memory)), layout_(std::move(layout)) {}

void Arena::Poison() {
  for (const PlacedBuffer& buffer : layout_.buffers) {
    const PlacedBuffer pages = PagesOf(buffer);
    worker::Poison(memory_.bytes().subspan(pages.offset, pages.size));
  }
}

std::optional<Failure> Arena::BesideFailure() const {
  for (const PlacedBuffer& buffer : layout_.buffers) {
    const PlacedBuffer pages = PagesOf(buffer);
    const auto bytes = memory_.bytes();
    if (!IsAllPoison(bytes.subspan(pages.offset, buffer.offset - pages.offset)) ||
        !IsAllPoison(bytes.subspan(buffer.end(), pages.end() - buffer.end()))) {
      return Failure{.code = FailureCode::kWrongOutput,
                     .message = "the kernel wrote beside its buffers"};
    }
  }
  return std::nullopt;
}

std::expected<void, Failure> Arena::Check(std::span<const ExpectedTensor> expected) const {
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
  if (std::optional<Failure> failure = BesideFailure()) return std::unexpected(*std::move(failure));
  return {};
}

Result<std::shared_ptr<Arena>> ArenaPool::Take(const BufferLayout& layout) {
  std::unique_ptr<Arena> arena;
  {
    std::unique_lock lock(mutex_);
    returned_.wait(
        lock, [&] { return used_bytes_ == 0 || used_bytes_ + layout.size <= options_.max_bytes; });
    used_bytes_ += layout.size;
    arena = TakeIdle(layout);
  }
  if (!arena) {
    Result<SharedMemory> memory = SharedMemory::Create(layout.size);
    if (!memory) {
      std::lock_guard lock(mutex_);
      used_bytes_ -= layout.size;
      returned_.notify_all();
      return std::unexpected(std::move(memory).error());
    }
    arena = std::make_unique<Arena>(*std::move(memory), layout);
  }
  return std::shared_ptr<Arena>(arena.release(),
                                [this](Arena* used) { GiveBack(std::unique_ptr<Arena>(used)); });
}

std::unique_ptr<Arena> ArenaPool::TakeIdle(const BufferLayout& layout) {
  const auto found = std::find_if(idle_.begin(), idle_.end(),
                                  [&](const auto& arena) { return arena->layout() == layout; });
  if (found == idle_.end()) return nullptr;
  std::unique_ptr<Arena> arena = std::move(*found);
  idle_.erase(found);
  idle_bytes_ -= layout.size;
  return arena;
}

void ArenaPool::GiveBack(std::unique_ptr<Arena> arena) {
  std::list<std::unique_ptr<Arena>> dropped;  // unmapped without the lock
  std::lock_guard lock(mutex_);
  const std::size_t size = arena->layout().size;
  used_bytes_ -= size;
  idle_bytes_ += size;
  idle_.push_front(std::move(arena));
  while (idle_bytes_ > options_.max_idle_bytes) {
    idle_bytes_ -= idle_.back()->layout().size;
    dropped.splice(dropped.end(), idle_, std::prev(idle_.end()));
  }
  returned_.notify_all();
}

}  // namespace loopfleet::worker
