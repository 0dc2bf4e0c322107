#include "common/base/service_manager.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/base/log.h"
#include "common/base/number_in.h"

namespace loopfleet {
namespace {

// How long READY and STOPPING, which are sent once, wait for a full socket. WATCHDOG does not wait.
constexpr timeval kPatience{.tv_sec = 1, .tv_usec = 0};

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

// The watchdog interval, if $WATCHDOG_PID names this process or is unset; otherwise 0.
Nanos WatchdogTime() {
  const std::string_view pid = Environment("WATCHDOG_PID");
  if (!pid.empty() && NumberIn<pid_t>(pid) != ::getpid()) return Nanos{0};
  const auto period = NumberIn<std::int64_t>(Environment("WATCHDOG_USEC"));
  return std::chrono::microseconds(period.value_or(0));
}

}  // namespace

std::unique_ptr<ServiceManager> ServiceManager::FromEnvironment(std::function<bool()> is_alive) {
  std::string address(Environment("NOTIFY_SOCKET"));
  UniqueFd socket;
  if (!address.empty()) {
    if (address.size() < sizeof(sockaddr_un::sun_path)) {
      socket = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    }
    if (!socket) log::Warning("service.notify message=\"NOTIFY_SOCKET cannot be used\"");
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
    if (address.front() == '@') address.front() = '\0';  // an abstract address
  }
  const Nanos watchdog = socket ? WatchdogTime() : Nanos{0};
  return std::unique_ptr<ServiceManager>(
      new ServiceManager(std::move(socket), std::move(address), watchdog, std::move(is_alive)));
}

ServiceManager::ServiceManager(UniqueFd socket, std::string address, Nanos watchdog,
                               std::function<bool()> is_alive)
    : socket_(std::move(socket)),
      address_(std::move(address)),
      watchdog_(watchdog),
      is_alive_(std::move(is_alive)) {
  if (watchdog_ > Nanos{0}) thread_ = std::thread([this] { Watch(); });
}

ServiceManager::~ServiceManager() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ServiceManager::Ready() { Say("READY=1", 0); }
void ServiceManager::Stopping() { Say("STOPPING=1", 0); }

void ServiceManager::Say(std::string_view text, int flags) {
  if (!socket_) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  // The length ends an abstract address. A path also ends with a zero byte, which `to` has.
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  if (::sendto(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL | flags,
               reinterpret_cast<const sockaddr*>(&to), size) < 0) {
    log::Warning("service.notify text={} message=\"{}\"", text, std::strerror(errno));
  }
}

void ServiceManager::Watch() {
  std::unique_lock lock(mutex_);
  // Every third of the interval, so that one late wake-up does no harm.
  while (!stop_changed_.wait_for(lock, watchdog_ / 3, [&] { return stop_; })) {
    // MSG_DONTWAIT: the destructor joins this thread and must not wait for a full socket.
    lock.unlock();
    if (is_alive_()) Say("WATCHDOG=1", MSG_DONTWAIT);
    lock.lock();
  }
}

}  // namespace loopfleet
