#pragma once
// HostSensors: clock, temperature and throttling of a processor core, as Linux reports them. What a
// host does not report is nullopt (on most virtual machines, everything). Safe from any thread.

#include <cstdint>
#include <optional>

#include "monitoring/host/host_files.h"

namespace loopfleet::monitoring {

class HostSensors {
 public:
  HostSensors(HostFiles files, int core);

  std::optional<double> ClockHertz() const;          // the present one, from cpufreq
  std::optional<double> TemperatureCelsius() const;  // of the processor's hottest sensor
  // How often the core was throttled by heat since construction.
  std::uint64_t Throttles() const;

 private:
  std::uint64_t CountThrottles() const;

  const HostFiles files_;
  const int core_;
  const std::uint64_t throttles_at_start_;
};

}  // namespace loopfleet::monitoring
