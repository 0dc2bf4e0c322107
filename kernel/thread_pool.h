#pragma once
// ThreadPool: the threads that run the parallel loops of kernels, in an executor child or in a
// process that calls kernels itself. The calling thread is one of them. The others start with the
// pool and never later, so that a sandbox can forbid new threads; they sleep between kernels.
//
// A loop is cut into one equal part per thread, part i meant for thread i, so that the same core
// does the same work in each run. When the caller has finished its own part, it takes over
// the parts that have not begun, so a busy core does not delay the loop. One
// thread at a time calls it; it runs one loop at a time.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "kernel/parallel_for.h"

namespace loopfleet {

class ThreadPool {
 public:
  // `cores`: one thread for each. The first is the caller's, which the pool does not pin; the
  // others are pinned if that is permitted. An empty list counts as one core.
  explicit ThreadPool(const std::vector<int>& cores);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::uint32_t size() const { return static_cast<std::uint32_t>(helpers_.size()) + 1; }
  // The interface for kernels; valid as long as the pool.
  const ParallelFor* parallel_for() const { return &entry_.parallel_for; }
  // Calls `work` once on each of the first `threads` threads, at the same time, and returns when
  // all are done. Waits for threads whose core is busy: no other core can do their work.
  void RunOnEach(std::uint32_t threads, const std::function<void()>& work);

  // How often a helper polls for the next loop before it sleeps. Kernels run their loops every few
  // microseconds; waking a sleeping thread takes tens of them.
  static constexpr std::uint32_t kSpins = 20'000;

 private:
  struct Entry {
    ParallelFor parallel_for;  // first member: generated code passes its address back
    ThreadPool* pool = nullptr;
  };
  struct Loop {
    ParallelFor::Task task = nullptr;
    const void* frame = nullptr;
    std::int64_t count = 0;
    std::int64_t parts = 0;
  };
  enum State : std::uint32_t { kIdle, kOffered, kTaken, kStop };
  // One per helper, on its own cache line. The caller offers a part here; either the helper or the
  // caller takes and runs it. loop_ does not change while a part is offered or taken.
  struct alignas(64) Place {
    std::atomic<std::uint32_t> state = kIdle;
  };

  static void RunEntry(const ParallelFor* self, ParallelFor::Task task, const void* frame,
                       std::int64_t count, std::int64_t threads);
  void Run(const Loop& loop);
  void Offer(const Loop& loop);  // all parts but the caller's own
  void AwaitPart(std::int64_t part);
  void Help(std::int64_t part);
  static void RunPart(const Loop& loop, std::int64_t part);

  Entry entry_;
  Loop loop_;
  std::unique_ptr<Place[]> places_;  // part i + 1 at i
  std::vector<std::jthread> helpers_;
};

}  // namespace loopfleet
