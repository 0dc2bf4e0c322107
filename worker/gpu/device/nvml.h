#pragma once
// DeviceSensors: reads one device through NVIDIA's management library (NVML) while kernels run:
// clocks, temperature, power, throttling, and other processes on the device. The real library is
// libnvidia-ml.so.1, opened at run time. A worker runs without it, and then records less about its
// measurements. Used by one thread at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/job/measurement.h"
#include "kernel/byte_codec.h"

namespace loopfleet::worker {

struct SensorReading {
  double clock_mhz = 0;  // of the multiprocessors; 0: unknown, here and below
  double memory_clock_mhz = 0;
  double temperature_c = 0;
  double power_w = 0;
  std::uint64_t throttle_reasons = 0;  // bits of nvmlClocksThrottleReasons
  friend bool operator==(const SensorReading&, const SensorReading&) = default;
};
template <class Archive>
void Fields(Archive& archive, FieldsOf<Archive, SensorReading>& reading) {
  archive(reading.clock_mhz, reading.memory_clock_mhz, reading.temperature_c, reading.power_w,
          reading.throttle_reasons);
}

// The reasons that run a kernel slower than the device can: power, heat, the power brake. An idle
// device or a clock set by the administrator does not count.
inline constexpr std::uint64_t kThrottledReasons = 0x04 | 0x08 | 0x20 | 0x40 | 0x80;
// "software power cap, hardware slowdown"; empty for 0.
std::string ThrottleText(std::uint64_t reasons);

// Adds a reading to the state recorded with a measurement.
void Note(const SensorReading& reading, DeviceState& state);

class DeviceSensors {
 public:
  virtual ~DeviceSensors() = default;
  virtual std::string DriverVersion() const = 0;  // "580.65.06"; empty: unknown
  virtual double MaxClockMhz() const = 0;         // 0: unknown
  virtual SensorReading Read() = 0;
  // The number of processes with a context on the device, this one included. None: unknown.
  virtual std::optional<int> Processes() = 0;
};

// Opens the sensors of the device at this PCI bus id. kNotFound: no such library. kSystem: the
// library lacks a needed function. kUnavailable: NVML does not start or does not know the device.
Result<std::unique_ptr<DeviceSensors>> OpenNvml(const std::string& bus_id,
                                                const std::string& library = "libnvidia-ml.so.1");

}  // namespace loopfleet::worker
