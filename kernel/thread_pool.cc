#include "kernel/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <latch>
#include <type_traits>

namespace loopfleet {
namespace {

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Best effort: if pinning is not permitted, the thread runs where the system puts it.
void PinTo(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<std::size_t>(core), &cores);
  ::pthread_setaffinity_np(::pthread_self(), sizeof cores, &cores);
}

}  // namespace

ThreadPool::ThreadPool(const std::vector<int>& cores)
    : entry_{.parallel_for = {.run = &ThreadPool::RunEntry}, .pool = this},
      places_(std::make_unique<Place[]>(cores.size())) {
  static_assert(std::is_standard_layout_v<Entry>);
  // Everything that needs privileges is done when this returns: the caller may drop them next.
  std::latch started(static_cast<std::ptrdiff_t>(cores.empty() ? 0 : cores.size() - 1));
  for (std::size_t i = 1; i < cores.size(); ++i) {
    helpers_.emplace_back([this, i, core = cores[i], &started] {
      PinTo(core);
      started.count_down();
      Help(static_cast<std::int64_t>(i));
    });
  }
  started.wait();
}

ThreadPool::~ThreadPool() {
  for (std::size_t i = 0; i < helpers_.size(); ++i) {
    places_[i].state = kStop;
    places_[i].state.notify_one();
  }
}

void ThreadPool::RunEntry(const ParallelFor* self, ParallelFor::Task task, const void* frame,
                          std::int64_t count, std::int64_t threads) {
  const auto* entry = reinterpret_cast<const Entry*>(self);
  const std::int64_t parts =
      std::min({threads, count, static_cast<std::int64_t>(entry->pool->size())});
  entry->pool->Run({.task = task, .frame = frame, .count = count, .parts = parts});
}

void ThreadPool::RunPart(const Loop& loop, std::int64_t part) {
  const std::int64_t each = loop.count / loop.parts;
  const std::int64_t longer = loop.count % loop.parts;  // these parts have one iteration more
  const std::int64_t begin = part * each + std::min(part, longer);
  const std::int64_t end = begin + each + (part < longer ? 1 : 0);
  loop.task(loop.frame, begin, end, part);
}

void ThreadPool::Run(const Loop& loop) {
  if (loop.count <= 0) return;
  if (loop.parts <= 1) {
    loop.task(loop.frame, 0, loop.count, 0);
    return;
  }
  Offer(loop);
  RunPart(loop, 0);
  for (std::int64_t part = 1; part < loop.parts; ++part) {
    Place& place = places_[static_cast<std::size_t>(part - 1)];
    std::uint32_t offered = kOffered;
    if (place.state.compare_exchange_strong(offered, kIdle, std::memory_order_acquire)) {
      RunPart(loop, part);
      continue;
    }
    AwaitPart(part);
  }
}

void ThreadPool::Offer(const Loop& loop) {
  loop_ = loop;
  for (std::int64_t part = 1; part < loop.parts; ++part) {
    Place& place = places_[static_cast<std::size_t>(part - 1)];
    place.state.store(kOffered, std::memory_order_release);
    place.state.notify_one();
  }
}

void ThreadPool::AwaitPart(std::int64_t part) {
  const Place& place = places_[static_cast<std::size_t>(part - 1)];
  for (std::uint32_t spins = 0; place.state.load(std::memory_order_acquire) != kIdle; ++spins) {
    // The helper may have lost its core midway: yield this one, in case it is the same.
    spins < kSpins ? Pause() : static_cast<void>(::sched_yield());
  }
}

void ThreadPool::RunOnEach(std::uint32_t threads, const std::function<void()>& work) {
  const std::int64_t parts = std::clamp<std::int64_t>(threads, 1, size());
  const Loop loop{
      .task = [](const void* frame, std::int64_t, std::int64_t,
                 std::int64_t) { (*static_cast<const std::function<void()>*>(frame))(); },
      .frame = &work,
      .count = parts,
      .parts = parts};
  Offer(loop);
  RunPart(loop, 0);
  for (std::int64_t part = 1; part < parts; ++part) AwaitPart(part);
}

void ThreadPool::Help(std::int64_t part) {
  std::atomic<std::uint32_t>& state = places_[static_cast<std::size_t>(part - 1)].state;
  std::uint32_t spins = 0;
  for (;;) {
    std::uint32_t offered = kOffered;
    // Read before the exchange: the exchange alone would take the cache line from the caller.
    if (state.load(std::memory_order_relaxed) == kOffered &&
        state.compare_exchange_strong(offered, kTaken, std::memory_order_acquire)) {
      RunPart(loop_, part);
      state.store(kIdle, std::memory_order_release);
      spins = 0;
      continue;
    }
    if (state.load(std::memory_order_relaxed) == kStop) return;
    ++spins < kSpins ? Pause() : state.wait(kIdle, std::memory_order_relaxed);
  }
}

}  // namespace loopfleet
