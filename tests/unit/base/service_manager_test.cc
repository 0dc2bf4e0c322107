#include "common/base/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace loopfleet {
namespace {

using namespace std::chrono_literals;

// A service manager's end, on an abstract socket with a name of this process.
class Manager {
 public:
  Manager() : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    name_ = "@loopfleet-test-" + std::to_string(::getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data() + 1, name_.size() - 1);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size())),
              0);
  }
  const std::string& name() const { return name_; }
  std::string Heard() {  // "" if nothing
    char text[256];
    const ssize_t size = ::recv(fd_.get(), text, sizeof text, 0);
    return size < 0 ? "" : std::string(text, static_cast<std::size_t>(size));
  }

 private:
  UniqueFd fd_;
  std::string name_;
};

TEST(ServiceManager, HearsThatTheDaemonIsReadyAndStopping) {
  Manager manager;
  ServiceManager service({.socket = manager.name(), .watchdog = {}});
  service.Ready("serving tcp://*:1");
  EXPECT_EQ(manager.Heard(), "READY=1\nSTATUS=serving tcp://*:1");
  service.Stopping();
  EXPECT_EQ(manager.Heard(), "STOPPING=1");
  service.Beat(Instant(1h));
  EXPECT_EQ(manager.Heard(), "");  // nobody watches
}

TEST(ServiceManager, IsToldTwiceInEachIntervalThatTheDaemonLives) {
  Manager manager;
  ServiceManager service({.socket = manager.name(), .watchdog = 10s});
  int beats = 0;
  for (Nanos at = 1s; at <= 41s; at += 100ms) {
    service.Beat(Instant(at));
    if (manager.Heard() == "WATCHDOG=1") ++beats;
  }
  EXPECT_EQ(beats, 9);
}

TEST(ServiceManager, WhereThereIsNoneNothingHappens) {
  ServiceManager service({});
  service.Ready("");
  service.Beat(Instant(1s));
  service.Stopping();
  ServiceManager gone({.socket = "/nonexistent/notify", .watchdog = 1s});
  gone.Ready("");
}

TEST(ServiceManager, TheEnvironmentSaysWhereItIs) {
  ::setenv("NOTIFY_SOCKET", "/run/notify", 1);
  ::setenv("WATCHDOG_USEC", "30000000", 1);
  ::unsetenv("WATCHDOG_PID");
  EXPECT_EQ(ServiceManager::FromEnvironment().socket, "/run/notify");
  EXPECT_EQ(ServiceManager::FromEnvironment().watchdog, Nanos(30s));
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  EXPECT_EQ(ServiceManager::FromEnvironment().watchdog, Nanos(30s));
  ::setenv("WATCHDOG_PID", "1", 1);  // another process is watched
  EXPECT_EQ(ServiceManager::FromEnvironment().watchdog, std::nullopt);
  ::setenv("WATCHDOG_USEC", "soon", 1);
  ::unsetenv("WATCHDOG_PID");
  EXPECT_EQ(ServiceManager::FromEnvironment().watchdog, std::nullopt);
  ::unsetenv("NOTIFY_SOCKET");
  ::unsetenv("WATCHDOG_USEC");
  EXPECT_EQ(ServiceManager::FromEnvironment().socket, "");
}

}  // namespace
}  // namespace loopfleet
