#include "common/base/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/base/log.h"

namespace loopfleet {
namespace {

std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<std::int64_t> Number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number <= 0) return std::nullopt;
  return number;
}

}  // namespace

ServiceManager::Options ServiceManager::FromEnvironment() {
  Options options{.socket = std::string(Variable("NOTIFY_SOCKET"))};
  const std::string_view pid = Variable("WATCHDOG_PID");
  const auto interval = Number(Variable("WATCHDOG_USEC"));
  if (interval && (pid.empty() || Number(pid) == ::getpid())) {
    options.watchdog = std::chrono::microseconds(*interval);
  }
  return options;
}

ServiceManager::ServiceManager(Options options) : options_(std::move(options)) {
  if (options_.socket.empty()) return;
  fd_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void ServiceManager::Ready(std::string_view status) {
  Send("READY=1\nSTATUS=" + std::string(status));
}

void ServiceManager::Stopping() { Send("STOPPING=1"); }

void ServiceManager::Beat(Instant now) {
  if (!options_.watchdog || now < next_beat_) return;
  next_beat_ = now + *options_.watchdog / 2;
  Send("WATCHDOG=1");
}

void ServiceManager::Send(const std::string& text) {
  if (options_.socket.empty()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (options_.socket.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, options_.socket.data(), options_.socket.size());
  if (options_.socket.front() == '@') address.sun_path[0] = '\0';
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + options_.socket.size());
  if (::sendto(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), length) < 0) {
    log::Warning("service_manager.unreachable socket={} errno={}", options_.socket, errno);
  }
}

}  // namespace loopfleet
