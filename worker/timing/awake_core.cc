#include "worker/timing/awake_core.h"

#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>

#include "common/base/log.h"

namespace loopfleet::worker {
namespace {

constexpr Nanos::rep kStop = std::numeric_limits<Nanos::rep>::max();

Nanos::rep Now() { return Nanos(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

AwakeCore::AwakeCore(int core, Nanos stay, const CoreKernels& kernels)
    : stay_(stay), kernels_(kernels) {
  if (stay > Nanos{0}) thread_ = std::thread([this, core] { Run(core); });
}

AwakeCore::~AwakeCore() {
  if (!thread_.joinable()) return;
  until_ = kStop;
  until_.notify_one();
  thread_.join();
}

void AwakeCore::Renew() {
  if (!thread_.joinable()) return;
  until_ = Now() + stay_.count();
  until_.notify_one();
}

void AwakeCore::Run(int core) {
  constexpr std::uint64_t kStepsPerLook = 10'000;  // some microseconds
  ::pthread_setname_np(::pthread_self(), "awake-core");
  const sched_param lowest{};
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(static_cast<std::size_t>(core), &cores);
  if (::sched_setscheduler(0, SCHED_IDLE, &lowest) != 0 ||
      ::sched_setaffinity(0, sizeof cores, &cores) != 0) {
    log::Warning(
        "worker.core_may_sleep core={} message=\"the system refuses its lowest class: {}\"", core,
        std::strerror(errno));
    return;
  }
  for (;;) {
    const Nanos::rep until = until_;
    if (until == kStop) return;
    if (Now() >= until) {
      until_.wait(until);
    } else {
      kernels_.multiply_adds_from_cache(kStepsPerLook);
    }
  }
}

}  // namespace loopfleet::worker
