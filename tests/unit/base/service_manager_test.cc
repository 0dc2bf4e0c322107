#include "common/base/service_manager.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

namespace loopfleet {
namespace {

// Stands in for systemd: a datagram socket, named in the environment.
class ServiceManagerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(directory_), nullptr);
    path_ = std::string(directory_) + "/notify";
    socket_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    address_.sun_family = AF_UNIX;
    std::memcpy(address_.sun_path, path_.data(), path_.size());
    ASSERT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_),
              0);
    ::setenv("NOTIFY_SOCKET", path_.c_str(), 1);
  }
  void TearDown() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(name);
    ::unlink(path_.c_str());
    ::rmdir(directory_);
  }

  std::string Hear() {
    char text[64];
    const ssize_t size = ::recv(socket_.get(), text, sizeof text, 0);
    return size < 0 ? "" : std::string(text, static_cast<std::size_t>(size));
  }
  bool IsQuiet() {
    pollfd item{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&item, 1, 0) == 0;
  }

  char directory_[32] = "/tmp/loopfleet-notify-XXXXXX";
  std::string path_;
  sockaddr_un address_{};
  UniqueFd socket_;
};

TEST_F(ServiceManagerTest, HearsThatItIsReadyAndThatItStops) {
  const auto service = ServiceManager::FromEnvironment([] { return true; });
  service->Ready();
  EXPECT_EQ(Hear(), "READY=1");
  service->Stopping();
  EXPECT_EQ(Hear(), "STOPPING=1");
}

TEST_F(ServiceManagerTest, TheWatchdogHearsFromItAsLongAsItLives) {
  ::setenv("WATCHDOG_USEC", "3000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  std::atomic<bool> alive{true};
  std::atomic<int> asked{0};
  const auto service = ServiceManager::FromEnvironment([&] {
    ++asked;
    return alive.load();
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Hear(), "WATCHDOG=1");
  alive = false;
  // After two more calls of is_alive, no earlier datagram is still to come.
  for (const int so_far = asked; asked < so_far + 2;) std::this_thread::yield();
  while (!IsQuiet()) Hear();
  for (const int so_far = asked; asked < so_far + 3;) std::this_thread::yield();
  EXPECT_TRUE(IsQuiet());
}

TEST_F(ServiceManagerTest, AWatchdogOfAnotherProcessIsNotAnswered) {
  ::setenv("WATCHDOG_USEC", "1000", 1);
  ::setenv("WATCHDOG_PID", "1", 1);
  std::atomic<int> asked{0};
  {
    const auto service = ServiceManager::FromEnvironment([&] {
      ++asked;
      return true;
    });
    service->Ready();
    EXPECT_EQ(Hear(), "READY=1");
  }
  EXPECT_EQ(asked, 0);
}

TEST_F(ServiceManagerTest, OneWhoDoesNotReadHoldsUpNobody) {
  // Fill the socket, as when the service manager is busy or does not read.
  const UniqueFd other(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  while (::sendto(other.get(), "x", 1, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&address_),
                  sizeof address_) == 1) {
  }
  ASSERT_EQ(errno, EAGAIN);
  ::setenv("WATCHDOG_USEC", "3000", 1);
  std::atomic<int> asked{0};
  {
    const auto service = ServiceManager::FromEnvironment([&] {
      ++asked;
      return true;
    });
    while (asked < 3) std::this_thread::yield();
    service->Stopping();
  }
  EXPECT_EQ(Hear(), "x");
}

TEST_F(ServiceManagerTest, NobodyAskedOrNobodyListens) {
  ::unsetenv("NOTIFY_SOCKET");
  ServiceManager::FromEnvironment([] { return true; })->Ready();
  EXPECT_TRUE(IsQuiet());
  ::setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
  ServiceManager::FromEnvironment([] { return true; })->Ready();  // logs a warning
}

}  // namespace
}  // namespace loopfleet
