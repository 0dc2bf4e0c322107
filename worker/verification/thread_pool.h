#pragma once
// ThreadPool: the threads that run the parallel loops of kernels, in an executor child. The calling
// thread is one of them. The others are started with the pool and never later, so a sandbox can
// forbid new threads once it stands; between kernels they sleep.
//
// A loop is cut into as many equal parts as it gets threads, part i meant for thread i: the same
// work on the same core each time it runs. What a thread has not begun when the caller is through
// with its own part, the caller does: a core that is busy with something else holds nothing up.
// Belongs to the thread that made it; one loop at a time.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "worker/verification/parallel_for.h"

namespace loopfleet::worker {

class ThreadPool {
 public:
  // `cores`: one thread for each; the first is the caller's, whom the pool does not pin, the others
  // are pinned where that is allowed. No cores: as one.
  explicit ThreadPool(const std::vector<int>& cores);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::uint32_t size() const { return static_cast<std::uint32_t>(helpers_.size()) + 1; }
  // What kernels are given; good as long as the pool.
  const ParallelFor* parallel_for() const { return &entry_.parallel_for; }
  // Calls `work` once on each of the first `threads` threads, at the same time, and returns when
  // all are through. Waits for a thread whose core is busy: what is done for a core's sake cannot
  // be done elsewhere.
  void OnEach(std::uint32_t threads, const std::function<void()>& work);

  // How long a helper looks for the next loop before it sleeps. Kernels run their loops every few
  // microseconds; waking a sleeping thread takes tens of them.
  static constexpr std::uint32_t kSpins = 20'000;

 private:
  struct Entry {
    ParallelFor parallel_for;  // first: generated code hands its address back
    ThreadPool* pool = nullptr;
  };
  struct Loop {
    ParallelFor::Task task = nullptr;
    const void* frame = nullptr;
    std::int64_t count = 0;
    std::int64_t parts = 0;
  };
  enum State : std::uint32_t { kIdle, kOffered, kTaken, kStop };
  // One for each helper, on a cache line of its own. The caller offers it a part; whoever takes
  // that, helper or caller, runs it. loop_ stands as long as any part is offered or taken.
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

}  // namespace loopfleet::worker
