#pragma once
// Clock: the source of time, passed to constructors so that tests control it. Monotonic time
// (Instant) decides leases and deadlines; wall time (WallTime) is only recorded.

#include <chrono>

namespace loopfleet {

using Nanos = std::chrono::nanoseconds;
using Instant = std::chrono::time_point<std::chrono::steady_clock, Nanos>;
using WallTime = std::chrono::time_point<std::chrono::system_clock, Nanos>;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;
  virtual WallTime WallNow() const = 0;
};

class SystemClock final : public Clock {
 public:
  Instant Now() const override { return std::chrono::steady_clock::now(); }
  WallTime WallNow() const override { return std::chrono::system_clock::now(); }
};

}  // namespace loopfleet
