#include "monitoring/host/host_sensors.h"

#include <gtest/gtest.h>

#include "tests/unit/monitoring/host/fake_host.h"

namespace loopfleet::monitoring {
namespace {

TEST(HostSensors, AHostThatSaysNothing) {
  const FakeHost host;
  const HostSensors sensors(host.files(), 1);
  EXPECT_EQ(sensors.ClockHertz(), std::nullopt);
  EXPECT_EQ(sensors.TemperatureCelsius(), std::nullopt);
  EXPECT_EQ(sensors.Throttles(), 0U);
}

TEST(HostSensors, TheHottestSensorOfTheProcessorAndNoOther) {
  FakeHost host;
  host.Sys("class/hwmon/hwmon0/name", "nvme");
  host.Sys("class/hwmon/hwmon0/temp1_input", "90000");
  host.Sys("class/hwmon/hwmon1/name", "coretemp");
  host.Sys("class/hwmon/hwmon1/temp1_input", "48000");
  host.Sys("class/hwmon/hwmon1/temp2_input", "53500");
  host.Sys("class/hwmon/hwmon1/temp2_crit", "100000");
  const HostSensors sensors(host.files(), 0);
  EXPECT_EQ(sensors.TemperatureCelsius(), 53.5);
}

TEST(HostSensors, AThermalZoneServesWhereThereIsNoSensor) {
  FakeHost host;
  host.Sys("class/thermal/thermal_zone0/type", "acpitz");
  host.Sys("class/thermal/thermal_zone0/temp", "27800");
  host.Sys("class/thermal/thermal_zone1/type", "x86_pkg_temp");
  host.Sys("class/thermal/thermal_zone1/temp", "51000");
  EXPECT_EQ(HostSensors(host.files(), 0).TemperatureCelsius(), 51.0);
}

TEST(HostSensors, ClockAndThrottlesAreOfItsCore) {
  FakeHost host;
  host.Sys("devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "800000");
  host.Sys("devices/system/cpu/cpu3/cpufreq/scaling_cur_freq", "3200000");
  host.Sys("devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", "40");
  const HostSensors sensors(host.files(), 3);
  EXPECT_EQ(sensors.ClockHertz(), 3.2e9);
  EXPECT_EQ(sensors.Throttles(), 0U);  // earlier ones do not count
  host.Sys("devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", "42");
  EXPECT_EQ(sensors.Throttles(), 2U);
}

}  // namespace
}  // namespace loopfleet::monitoring
