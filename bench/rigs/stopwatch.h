#pragma once
// Stopwatch: wall and processor time of this process since construction. Since: the time since a
// moment.

#include <sys/resource.h>

#include <chrono>
#include <ratio>

namespace loopfleet::bench {

// In seconds, or in the unit that is given: Since<std::milli>(start).
template <class Unit = std::ratio<1>>
double Since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, Unit>(std::chrono::steady_clock::now() - start).count();
}

class Stopwatch {
 public:
  double wall() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double kernel() const { return CpuNow().kernel - cpu_.kernel; }
  double cpu() const { return CpuNow().user - cpu_.user + kernel(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct CpuSeconds {
    double user = 0;
    double kernel = 0;
  };

  static CpuSeconds CpuNow() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return {.user = seconds(usage.ru_utime), .kernel = seconds(usage.ru_stime)};
  }

  Clock::time_point start_ = Clock::now();
  CpuSeconds cpu_ = CpuNow();
};

}  // namespace loopfleet::bench
