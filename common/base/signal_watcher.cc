#include "common/base/signal_watcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/base/log.h"

namespace loopfleet {
namespace {

constexpr int kExitBySignal = 128;

bool IsIgnored(int signal) {
  struct sigaction action{};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

Result<std::unique_ptr<SignalWatcher>> SignalWatcher::Start() {
  sigset_t watched;
  sigemptyset(&watched);
  sigaddset(&watched, SIGTERM);
  sigaddset(&watched, SIGINT);
  sigaddset(&watched, SIGUSR1);
  if (!IsIgnored(SIGHUP)) sigaddset(&watched, SIGHUP);
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  UniqueFd signals(::signalfd(-1, &watched, SFD_CLOEXEC));
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!signals || !stop) {
    return Fail(ErrorKind::kSystem, fmt::format("signalfd: {}", std::strerror(errno)));
  }
  return std::unique_ptr<SignalWatcher>(new SignalWatcher(std::move(signals), std::move(stop)));
}

SignalWatcher::SignalWatcher(UniqueFd signals, UniqueFd stop)
    : signals_(std::move(signals)), stop_(std::move(stop)) {}

SignalWatcher::~SignalWatcher() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  if (::write(stop_.get(), &one, sizeof one) < 0) std::abort();  // cannot fail on an eventfd at 0
  thread_.join();
}

bool SignalWatcher::IsPending() const {
  pollfd item{signals_.get(), POLLIN, 0};
  return ::poll(&item, 1, 0) > 0;
}

void SignalWatcher::Watch(std::function<void()> on_first) {
  on_first_ = std::move(on_first);
  thread_ = std::thread([this] {
    for (;;) {
      pollfd items[] = {{signals_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      if (::poll(items, 2, -1) < 0) continue;
      if (items[1].revents != 0) return;
      signalfd_siginfo info{};
      if (::read(signals_.get(), &info, sizeof info) != sizeof info) continue;
      HandleSignal(static_cast<int>(info.ssi_signo));
    }
  });
}

void SignalWatcher::HandleSignal(int signal) {
  std::lock_guard lock(mutex_);
  if (!on_first_ && signal == SIGUSR1) return;
  if (!on_first_) ::_exit(kExitBySignal + signal);
  log::Info("signal number={} action=drain", signal);
  std::exchange(on_first_, nullptr)();
}

void SignalWatcher::Forget() {
  std::lock_guard lock(mutex_);
  on_first_ = nullptr;
}

}  // namespace loopfleet
