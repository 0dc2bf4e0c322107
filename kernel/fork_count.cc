#include "kernel/fork_count.h"

#include <pthread.h>

#include <atomic>

namespace loopfleet {
namespace {

std::atomic<std::uint64_t> forks = 0;

void Count() { forks.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

std::uint64_t ForkCount() {
  static const int registered = ::pthread_atfork(nullptr, Count, Count);
  (void)registered;
  return forks.load(std::memory_order_relaxed);
}

}  // namespace loopfleet
