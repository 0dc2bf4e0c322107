#pragma once
// ServiceManager: reports this process's state to the service manager that started it (systemd with
// Type=notify), by datagrams to $NOTIFY_SOCKET (sd_notify(3)). With a watchdog ($WATCHDOG_USEC) it
// also reports at least twice per interval that the process is alive. Does nothing without
// $NOTIFY_SOCKET, and waits at most a second for a service manager that does not read. Safe from
// any thread. A watchdog gets a thread of its own, so create this after every fork of the process.

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
  // `is_alive` is called on the watchdog thread; what it refers to has to outlive this object.
  static std::unique_ptr<ServiceManager> FromEnvironment(std::function<bool()> is_alive);
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  void Ready();     // the process serves
  void Stopping();  // the process drains, then exits

 private:
  ServiceManager(UniqueFd socket, std::string address, Nanos watchdog,
                 std::function<bool()> is_alive);
  void Say(std::string_view text, int flags);  // flags of sendto
  void Watch();

  const UniqueFd socket_;      // none: no $NOTIFY_SOCKET
  const std::string address_;  // $NOTIFY_SOCKET, as the bytes of sun_path
  const Nanos watchdog_;       // interval; 0: no watchdog
  const std::function<bool()> is_alive_;
  std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace loopfleet
