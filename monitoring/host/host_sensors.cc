#include "monitoring/host/host_sensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace loopfleet::monitoring {
namespace {

constexpr double kMilli = 1e-3;

// Drivers of processor temperature sensors: Intel, AMD, ARM.
constexpr std::array<std::string_view, 5> kProcessorDrivers = {"coretemp", "k10temp", "zenpower",
                                                               "cpu_thermal", "scpi_sensors"};
constexpr std::array<std::string_view, 3> kProcessorZones = {"x86_pkg_temp", "cpu-thermal",
                                                             "cpu_thermal"};

void Hotter(std::optional<double>& hottest, std::optional<double> millidegrees) {
  if (!millidegrees) return;
  hottest = std::max(hottest.value_or(*millidegrees * kMilli), *millidegrees * kMilli);
}

}  // namespace

HostSensors::HostSensors(HostFiles files, int core)
    : files_(std::move(files)), core_(core), throttles_at_start_(CountThrottles()) {}

std::optional<double> HostSensors::ClockHertz() const {
  constexpr double kHertzPerKilohertz = 1e3;
  const auto kilohertz =
      files_.SysNumber(fmt::format("devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", core_));
  if (!kilohertz) return std::nullopt;
  return *kilohertz * kHertzPerKilohertz;
}

std::optional<double> HostSensors::TemperatureCelsius() const {
  std::optional<double> hottest;
  for (const std::string& monitor : files_.SysNames("class/hwmon")) {
    const std::string folder = "class/hwmon/" + monitor;
    const std::string driver = files_.Sys(folder + "/name").value_or("");
    if (std::ranges::find(kProcessorDrivers, driver) == kProcessorDrivers.end()) continue;
    for (const std::string& file : files_.SysNames(folder)) {
      if (!file.starts_with("temp") || !file.ends_with("_input")) continue;
      Hotter(hottest, files_.SysNumber(folder + "/" + file));
    }
  }
  if (hottest) return hottest;
  for (const std::string& zone : files_.SysNames("class/thermal")) {
    const std::string folder = "class/thermal/" + zone;
    const std::string type = files_.Sys(folder + "/type").value_or("");
    if (std::ranges::find(kProcessorZones, type) == kProcessorZones.end()) continue;
    Hotter(hottest, files_.SysNumber(folder + "/temp"));
  }
  return hottest;
}

std::uint64_t HostSensors::CountThrottles() const {
  const auto count = files_.SysNumber(
      fmt::format("devices/system/cpu/cpu{}/thermal_throttle/core_throttle_count", core_));
  return count && *count > 0 ? static_cast<std::uint64_t>(*count) : 0;
}

std::uint64_t HostSensors::Throttles() const {
  const std::uint64_t now = CountThrottles();
  return now > throttles_at_start_ ? now - throttles_at_start_ : 0;
}

}  // namespace loopfleet::monitoring
