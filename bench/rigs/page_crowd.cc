#include "bench/rigs/page_crowd.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <string_view>
#include <vector>

#include "common/base/unique_fd.h"

namespace loopfleet::bench {
namespace {

constexpr std::string_view kWatch = "GET /api/live HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kHalf = "GET /api/overview HTTP/1.1\r\nHost: local";
constexpr std::chrono::milliseconds kLook{20};

UniqueFd ConnectTo(const std::string& address, std::string_view say) {
  const auto colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
  if (::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr) != 1) return {};
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return {};
  if (::send(fd.get(), say.data(), say.size(), MSG_NOSIGNAL) < 0) return {};
  return fd;
}

}  // namespace

PageCrowd::PageCrowd(const PageCrowdOptions& options)
    : options_(options), thread_([this] { Run(); }) {
  while (watching_ < options_.viewers) std::this_thread::sleep_for(kLook);
}

PageCrowd::~PageCrowd() {
  stop_ = true;
  thread_.join();
}

void PageCrowd::Run() {
  struct One {
    UniqueFd fd;
    bool views = false;
    bool began = false;
  };
  std::vector<One> all(options_.viewers + options_.half_open);
  for (std::size_t i = 0; i < options_.viewers; ++i) all[i].views = true;
  std::vector<pollfd> polled(all.size());
  char buffer[1 << 16];
  while (!stop_) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      One& one = all[i];
      if (!one.fd) one.fd = ConnectTo(options_.address, one.views ? kWatch : kHalf);
      polled[i] = {.fd = one.fd.get(), .events = POLLIN, .revents = 0};
    }
    if (::poll(polled.data(), polled.size(), kLook.count()) <= 0) continue;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (polled[i].revents == 0) continue;
      One& one = all[i];
      const ssize_t count = ::recv(one.fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (count > 0) {
        if (!one.views) continue;
        bytes_ += static_cast<std::uint64_t>(count);
        const std::string_view text(buffer, static_cast<std::size_t>(count));
        if (!one.began && text.find("data: ") != std::string_view::npos) {
          one.began = true;
          ++watching_;
        }
        continue;
      }
      if (one.began) --watching_;
      one.began = false;
      one.fd = UniqueFd();  // closed by the server: reconnect
    }
  }
}

}  // namespace loopfleet::bench
