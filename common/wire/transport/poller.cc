#include "common/wire/transport/poller.h"

#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "common/base/check.h"
#include "common/wire/transport/authenticator_impl.h"

namespace loopfleet::wire {

void Poller::Add(Router& router) {
  items_.push_back({.socket = router.handle(), .fd = -1, .wakeup = nullptr});
}
void Poller::Add(Dealer& dealer) {
  items_.push_back({.socket = dealer.handle(), .fd = -1, .wakeup = nullptr});
  if (void* monitor = dealer.monitor_handle()) {
    items_.push_back({.socket = monitor, .fd = -1, .wakeup = nullptr});
  }
}
void Poller::Add(Wakeup& wakeup) {
  items_.push_back({.socket = nullptr, .fd = wakeup.fd(), .wakeup = &wakeup});
}

void Poller::Add(Authenticator& authenticator) {
  items_.push_back({.socket = authenticator.impl().socket.handle(), .fd = -1, .wakeup = nullptr});
}
void Poller::AddReadable(int fd) {
  items_.push_back({.socket = nullptr, .fd = fd, .wakeup = nullptr});
}

void Poller::Wait(Nanos timeout) {
  std::vector<zmq_pollitem_t> items;
  items.reserve(items_.size());
  for (const Item& item : items_) items.push_back({item.socket, item.fd, ZMQ_POLLIN, 0});
  // Rounded up, so that a wait for a deadline does not end just before it.
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
      std::clamp<Nanos>(timeout, Nanos::zero(), std::chrono::hours(1)));
  const int ready =
      ::zmq_poll(items.data(), static_cast<int>(items.size()), static_cast<long>(wait.count()));
  LF_CHECK(ready >= 0 || errno == EINTR, "polling: {}", ::zmq_strerror(errno));
  if (ready <= 0) return;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items_[i].wakeup != nullptr && items[i].revents != 0) items_[i].wakeup->Clear();
  }
}

}  // namespace loopfleet::wire
