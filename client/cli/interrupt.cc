#include "client/cli/interrupt.h"

#include <signal.h>

namespace loopfleet::client {
namespace {

// Global, because a signal handler has no context.
std::atomic<bool> g_interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

}  // namespace

const std::atomic<bool>& InterruptFlag() {
  struct sigaction action{};
  action.sa_handler = [](int) { g_interrupted.store(true, std::memory_order_relaxed); };
  action.sa_flags = SA_RESETHAND;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  return g_interrupted;
}

}  // namespace loopfleet::client
