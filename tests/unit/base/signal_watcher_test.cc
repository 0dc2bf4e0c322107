// Each test forks, because the watched signals stay blocked in the process.

#include "common/base/signal_watcher.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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
