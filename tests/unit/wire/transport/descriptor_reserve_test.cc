#include "common/wire/transport/descriptor_reserve.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>
#include <vector>

#include "common/base/unique_fd.h"
#include "common/wire/transport/listener.h"

namespace loopfleet::wire {
namespace {

constexpr std::size_t kPeers = 40;

// Limits this process to few descriptors during its lifetime.
class FewDescriptors {
 public:
  FewDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{.rlim_cur = 200, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

bool HasPendingConnection(int listener) {
  pollfd queue{.fd = listener, .events = POLLIN, .revents = 0};
  return ::poll(&queue, 1, 0) > 0;
}

std::vector<UniqueFd> TakeAllDescriptors() {
  std::vector<UniqueFd> taken;
  while (UniqueFd one{::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)}) taken.push_back(std::move(one));
  return taken;
}

class DescriptorReserveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto listener = ListenOn({.host = "127.0.0.1", .port = 0}, 64);
    ASSERT_TRUE(listener.has_value()) << listener.error().message;
    listener_ = *std::move(listener);
  }

  void Queue(std::size_t count) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    for (std::size_t i = 0; i < count; ++i) {
      UniqueFd peer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      ASSERT_TRUE(peer);
      ASSERT_EQ(::connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
      peers_.push_back(std::move(peer));
    }
  }

  // Peers that were hung up on read an end or a reset.
  std::size_t CountHungUpOn() const {
    std::size_t count = 0;
    for (const UniqueFd& peer : peers_) {
      pollfd item{.fd = peer.get(), .events = POLLIN, .revents = 0};
      if (::poll(&item, 1, 1000) > 0) ++count;
    }
    return count;
  }

  UniqueFd listener_;
  std::vector<UniqueFd> peers_;
};

TEST_F(DescriptorReserveTest, IsTouchedOnceATenthIsLeft) {
  const FewDescriptors few;
  const DescriptorReserve reserve(listener_.get());
  EXPECT_FALSE(reserve.IsTouched());
  auto taken = TakeAllDescriptors();
  EXPECT_TRUE(reserve.IsTouched());
  taken.resize(taken.size() - 15);
  EXPECT_TRUE(reserve.IsTouched());
  taken.resize(taken.size() - 10);
  EXPECT_FALSE(reserve.IsTouched());
}

TEST_F(DescriptorReserveTest, HangsUpWithoutADescriptorLeft) {
  const FewDescriptors few;
  const DescriptorReserve reserve(listener_.get());
  Queue(kPeers);
  const auto taken = TakeAllDescriptors();
  const Status done = reserve.HangUpOnQueue();
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_FALSE(HasPendingConnection(listener_.get()));
  EXPECT_EQ(CountHungUpOn(), kPeers);
}

// No thread can be started either: the default stack size is larger than the address space.
TEST_F(DescriptorReserveTest, WithoutAThreadItIsAnError) {
  Queue(1);
  pthread_attr_t usual;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  pthread_attr_t huge;
  ASSERT_EQ(::pthread_attr_init(&huge), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&huge, std::size_t{1} << 48), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&huge), 0);
  const Status done = DescriptorReserve(listener_.get()).HangUpOnQueue();
  ASSERT_EQ(::pthread_setattr_default_np(&usual), 0);
  ::pthread_attr_destroy(&huge);
  ::pthread_attr_destroy(&usual);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().kind, ErrorKind::kSystem);
}

// Like libzmq, the other thread calls accept without end and keeps what it gets.
TEST_F(DescriptorReserveTest, SomebodyWhoAcceptsMeanwhileDoesNotStopIt) {
  const FewDescriptors few;
  const DescriptorReserve reserve(listener_.get());
  Queue(kPeers);
  const auto taken = TakeAllDescriptors();
  std::atomic<bool> is_done = false;
  std::jthread greedy([&] {
    while (!is_done) EXPECT_LT(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC), 0);
  });
  EXPECT_TRUE(reserve.HangUpOnQueue().has_value());
  EXPECT_FALSE(HasPendingConnection(listener_.get()));
  is_done = true;
}

// The process's own descriptors stay open.
TEST_F(DescriptorReserveTest, LeavesTheProcessWhatItHas) {
  Queue(1);
  EXPECT_TRUE(DescriptorReserve(listener_.get()).HangUpOnQueue().has_value());
  EXPECT_EQ(CountHungUpOn(), 1u);
  EXPECT_GE(::fcntl(STDERR_FILENO, F_GETFD), 0);
  EXPECT_GE(::fcntl(peers_.front().get(), F_GETFD), 0);
  peers_.clear();
  Queue(1);  // the socket still listens
  EXPECT_TRUE(UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
}

}  // namespace
}  // namespace loopfleet::wire
