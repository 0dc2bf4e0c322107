#include "common/base/failpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "common/base/check.h"

namespace loopfleet {
namespace {

struct Plan {
  std::uint64_t count = 1;                         // 0: every time
  std::optional<std::chrono::milliseconds> pause;  // nullopt: kill
  std::string pause_while;                         // pause while this file exists; "": unused
};

class Failpoints {
 public:
  Failpoints() {
    const char* given = std::getenv("LOOPFLEET_FAILPOINT");
    std::string_view rest = given == nullptr ? "" : given;
    while (!rest.empty()) {
      const std::string one(rest.substr(0, rest.find(',')));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      const auto colon = one.find(':');
      LF_CHECK(colon != std::string::npos, "LOOPFLEET_FAILPOINT: '{}' has no count", one);
      Plan plan{.count = std::stoull(one.substr(colon + 1))};
      if (const auto pause = one.find(":pause="); pause != std::string::npos) {
        plan.pause = std::chrono::milliseconds(std::stol(one.substr(pause + 7)));
      }
      if (const auto file = one.find(":pause-while="); file != std::string::npos) {
        plan.pause_while = one.substr(file + std::string_view(":pause-while=").size());
      }
      plans_[one.substr(0, colon)] = plan;
    }
    if (const char* log = std::getenv("LOOPFLEET_FAILPOINT_LOG")) {
      log_ = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
  }

  void Reach(std::string_view name) {
    std::optional<Plan> due;
    {
      std::lock_guard lock(mutex_);
      const std::string key(name);
      const std::uint64_t times = ++reached_[key];
      if (times == 1 && log_ >= 0) {
        const std::string line = key + "\n";
        LF_CHECK(::write(log_, line.data(), line.size()) > 0, "the log of failpoints");
      }
      const auto plan = plans_.find(key);
      if (plan == plans_.end()) return;
      if (plan->second.count == 0 || plan->second.count == times) due = plan->second;
    }
    if (!due) return;
    if (!due->pause_while.empty()) {
      while (::access(due->pause_while.c_str(), F_OK) == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    } else if (due->pause) {
      std::this_thread::sleep_for(*due->pause);
    } else {
      ::kill(::getpid(), SIGKILL);
      for (;;) ::pause();
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Plan> plans_;
  std::map<std::string, std::uint64_t> reached_;
  int log_ = -1;
};

}  // namespace

void ReachFailpoint(std::string_view name) {
  static Failpoints points;
  points.Reach(name);
}

void SetFromEnvironment(const char* name, std::chrono::milliseconds& duration) {
  if (const char* given = std::getenv(name)) duration = std::chrono::milliseconds(std::stol(given));
}

}  // namespace loopfleet
