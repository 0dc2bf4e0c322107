#pragma once
// ServiceManager: what a daemon tells the service manager that started it (systemd's sd_notify
// protocol): that it is ready, that it is stopping, and, where a watchdog was asked for, that it is
// alive. Does nothing where there is none (no NOTIFY_SOCKET). Belongs to one thread.

#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/unique_fd.h"

namespace loopfleet {

class ServiceManager {
 public:
  struct Options {
    std::string socket;             // a path, or "@name" for an abstract one; "": there is none
    std::optional<Nanos> watchdog;  // silence for so long, and the daemon is killed
  };
  // From NOTIFY_SOCKET and WATCHDOG_USEC (if WATCHDOG_PID is this process or unset).
  static Options FromEnvironment();

  explicit ServiceManager(Options options);

  void Ready(std::string_view status);  // a line for `systemctl status`
  void Stopping();
  // To be called often, by the loop whose turning means that the daemon is alive. Says so at most
  // twice in each watchdog interval.
  void Beat(Instant now);

 private:
  void Send(const std::string& text);

  const Options options_;
  UniqueFd fd_;
  Instant next_beat_{};
};

}  // namespace loopfleet
