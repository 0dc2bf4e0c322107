#pragma once
// HostSensors: clock, temperature and throttling of a processor core, as Linux states them. What a
// host does not state (most virtual machines: nothing) is nullopt. Safe from any thread.

#include <cstdint>
#include <optional>

#include "monitoring/host/host_files.h"

namespace loopfleet::monitoring {

class HostSensors {
 public:
  HostSensors(HostFiles files, int core);

  std::optional<double> ClockHertz() const;          // cpufreq's, of now
  std::optional<double> TemperatureCelsius() const;  // the hottest sensor of the processor
  // Times that the core was slowed down because it was hot, since construction.
  std::uint64_t Throttles() const;

 private:
  std::uint64_t CountThrottles() const;

  const HostFiles files_;
  const int core_;
  const std::uint64_t throttles_at_start_;
};

}  // namespace loopfleet::monitoring
