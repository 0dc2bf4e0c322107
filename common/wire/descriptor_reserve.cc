#include "common/wire/descriptor_reserve.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace loopfleet::wire {
namespace {

constexpr std::size_t kSpare = 16;
constexpr int kMostAtOnce = 4096;  // hung up on: without a filter more may come for ever

}  // namespace

DescriptorReserve::DescriptorReserve(int listener) : listener_(listener) { Refill(); }

void DescriptorReserve::Refill() {
  while (spare_.size() < kSpare) {
    UniqueFd one(::fcntl(listener_, F_DUPFD_CLOEXEC, 0));
    if (!one) return;  // as many as there are
    spare_.push_back(std::move(one));
  }
}

// The kernel gives the lowest number that is free, so all below it are taken.
bool DescriptorReserve::IsTouched() const {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const UniqueFd lowest(::fcntl(listener_, F_DUPFD_CLOEXEC, 0));
  return !lowest || static_cast<rlim_t>(lowest.get()) >= limit.rlim_cur - limit.rlim_cur / 10;
}

void DescriptorReserve::HangUpOnQueue() {
  spare_.clear();
  for (int i = 0; i < kMostAtOnce; ++i) {
    if (!UniqueFd(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC))) break;
  }
  Refill();
}

}  // namespace loopfleet::wire
