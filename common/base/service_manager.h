#pragma once
// ServiceManager: tells the one that started this process (systemd with Type=notify) how it is, by
// datagrams to $NOTIFY_SOCKET (sd_notify(3)), and while it lives, at least twice in each watchdog
// time ($WATCHDOG_USEC). Does nothing where nobody asked, and waits a second at most for one who does
// not read. Its calls are safe from any thread. It starts one of its own if there is a watchdog: make
// it after every fork of this process.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "common/base/clock.h"
#include "common/base/unique_fd.h"

namespace loopfleet {

class ServiceManager {
 public:
  // `is_alive` is asked on a thread of its own, and has to outlive this.
  static std::unique_ptr<ServiceManager> FromEnvironment(std::function<bool()> is_alive);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  void Ready();     // it serves
  void Stopping();  // it was told to end, and finishes what it has begun

 private:
  ServiceManager(UniqueFd socket, std::string address, Nanos watchdog,
                 std::function<bool()> is_alive);
  void Say(std::string_view text, int flags);  // of sendto
  void Watch();

  const UniqueFd socket_;      // none: nobody asked
  const std::string address_;  // of $NOTIFY_SOCKET, as bytes of a sockaddr_un
  const Nanos watchdog_;       // 0: there is none
  const std::function<bool()> is_alive_;
  std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace loopfleet
