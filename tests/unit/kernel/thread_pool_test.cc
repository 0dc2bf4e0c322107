#include "kernel/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "common/base/random.h"

namespace loopfleet {
namespace {

struct Frame {
  std::vector<int>* visits;
  std::atomic<std::int64_t>* most_thread;
};

void Visit(const void* raw, std::int64_t begin, std::int64_t end, std::int64_t thread) {
  const auto& frame = *static_cast<const Frame*>(raw);
  for (std::int64_t i = begin; i < end; ++i) ++(*frame.visits)[static_cast<std::size_t>(i)];
  std::int64_t most = *frame.most_thread;
  while (thread > most && !frame.most_thread->compare_exchange_weak(most, thread)) {
  }
}

void RunVisits(const ThreadPool& pool, const Frame& frame, std::int64_t count,
               std::int64_t threads) {
  pool.parallel_for()->run(pool.parallel_for(), Visit, &frame, count, threads);
}

TEST(ThreadPool, RunsEachIterationOnce) {
  for (const std::vector<int>& cores : std::vector<std::vector<int>>{{}, {0}, {0, 1}, {0, 1, 0}}) {
    const ThreadPool pool(cores);
    SplitMix64 random(3);
    for (int round = 0; round < 3000; ++round) {
      const auto count = static_cast<std::int64_t>(random.Below(20));
      const auto threads = static_cast<std::int64_t>(1 + random.Below(5));
      std::vector<int> visits(static_cast<std::size_t>(count));
      std::atomic<std::int64_t> most_thread = 0;
      RunVisits(pool, {&visits, &most_thread}, count, threads);
      EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(count), 1));
      EXPECT_LT(most_thread, threads);
      EXPECT_LT(most_thread, static_cast<std::int64_t>(pool.size()));
    }
  }
}

TEST(ThreadPool, PartsAreEqualAndInOrder) {
  const ThreadPool pool({0, 1, 0, 1});
  struct Parts {
    std::atomic<std::int64_t> begin[4];
    std::atomic<std::int64_t> end[4];
  } parts{};
  pool.parallel_for()->run(
      pool.parallel_for(),
      [](const void* frame, std::int64_t begin, std::int64_t end, std::int64_t thread) {
        auto* seen = static_cast<Parts*>(const_cast<void*>(frame));
        seen->begin[thread] = begin;
        seen->end[thread] = end;
      },
      &parts, 10, 4);
  const std::int64_t bounds[] = {0, 3, 6, 8, 10};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(parts.begin[i], bounds[i]);
    EXPECT_EQ(parts.end[i], bounds[i + 1]);
  }
}

// Per-core work (such as evicting caches) runs on the core's own thread, however late.
TEST(ThreadPool, OnEachIsOnceOnEachThread) {
  ThreadPool pool({0, 1, 0});
  for (std::uint32_t threads = 1; threads <= 4; ++threads) {
    for (int round = 0; round < 500; ++round) {
      std::mutex mutex;
      std::multiset<std::thread::id> seen;
      pool.RunOnEach(threads, [&] {
        std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
      });
      EXPECT_EQ(seen.size(), std::min(threads, pool.size()));
      EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), seen.size());
      EXPECT_TRUE(seen.contains(std::this_thread::get_id()));
    }
  }
}

TEST(ThreadPool, SleepsAndWakes) {
  const ThreadPool pool({0, 1});
  std::vector<int> visits(8);
  std::atomic<std::int64_t> most_thread = 0;
  for (int round = 1; round <= 5; ++round) {
    // Far longer than the helper polls for work.
    for (std::uint32_t i = 0; i < 20 * ThreadPool::kSpins; ++i) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    RunVisits(pool, {&visits, &most_thread}, 8, 2);
    EXPECT_EQ(visits, std::vector<int>(8, round));
  }
}

}  // namespace
}  // namespace loopfleet
