// Each test forks, because the watched signals stay blocked in the process.

#include "common/base/signal_watcher.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

namespace loopfleet {
namespace {

constexpr int kDrains = 7;

int ExitOf(void (*run)()) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    run();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(SignalWatcherTest, TheFirstSignalAsksToDrainAHangupToo) {
  EXPECT_EQ(ExitOf([] {
              const auto signals = SignalWatcher::Start().value();
              ::kill(::getpid(), SIGHUP);
              signals->Watch([] { ::_exit(kDrains); });
              ::pause();
            }),
            kDrains);
  EXPECT_EQ(ExitOf([] {
              const auto signals = SignalWatcher::Start().value();
              ::kill(::getpid(), SIGTERM);
              signals->Watch([] { ::_exit(kDrains); });
              ::pause();
            }),
            kDrains);
}

TEST(SignalWatcherTest, ARequestToDrainMayBeRepeated) {
  EXPECT_EQ(ExitOf([] {
              static std::atomic<int> drains{0};
              const auto signals = SignalWatcher::Start().value();
              ::kill(::getpid(), SIGUSR1);
              signals->Watch([] {
                ++drains;
                drains.notify_one();
              });
              drains.wait(0);
              ::kill(::getpid(), SIGUSR1);
              // Signals are taken in the order of their numbers, so that one before this.
              ::kill(::getpid(), SIGTERM);
              ::pause();
            }),
            128 + SIGTERM);
}

TEST(SignalWatcherTest, WhoWasStartedToIgnoreHangupsDoes) {
  EXPECT_EQ(ExitOf([] {
              std::signal(SIGHUP, SIG_IGN);
              const auto signals = SignalWatcher::Start().value();
              ::kill(::getpid(), SIGHUP);
              ::_exit(signals->IsPending() ? kDrains : 0);
            }),
            0);
}

}  // namespace
}  // namespace loopfleet
