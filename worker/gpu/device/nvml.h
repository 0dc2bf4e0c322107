#pragma once
// DeviceSensors: what NVIDIA's management library (NVML) tells of one device while kernels run on
// it: clocks, heat, power, whether it is held back, and who else uses it. The real one is
// libnvidia-ml.so.1, opened at run time; a worker runs without it, and says less of its figures
// then. One thread at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "common/job/measurement.h"

namespace loopfleet::worker {

struct SensorReading {
  double clock_mhz = 0;  // of the multiprocessors; 0: not told, like all here
  double memory_clock_mhz = 0;
  double temperature_c = 0;
  double power_w = 0;
  std::uint64_t throttle_reasons = 0;  // bits of nvmlClocksThrottleReasons
  friend bool operator==(const SensorReading&, const SensorReading&) = default;
};

// Those reasons that make a kernel slower than the device can run it: power, heat, the power brake.
// Being idle, or set to a clock by whoever owns it, is none.
inline constexpr std::uint64_t kHeldBack = 0x04 | 0x08 | 0x20 | 0x40 | 0x80;
// "software power cap, hardware slowdown"; "" for 0.
std::string ThrottleText(std::uint64_t reasons);

// What a row says of readings that were taken while a kernel was timed, the last one `reading`.
void Note(const SensorReading& reading, DeviceState& state);

class DeviceSensors {
 public:
  virtual ~DeviceSensors() = default;
  virtual std::string DriverVersion() const = 0;  // "580.65.06"; "": not told
  virtual double MaxClockMhz() const = 0;         // 0: not told
  virtual SensorReading Read() = 0;
  // How many processes have a context on the device, this one's included; none: not told.
  virtual std::optional<int> Processes() = 0;
};

// Of the device at that place of the PCI bus. kNotFound: there is no such library; kSystem: it does
// not do what is needed; kUnavailable: it does not know the device.
Result<std::unique_ptr<DeviceSensors>> OpenNvml(const std::string& bus_id,
                                                const std::string& library = "libnvidia-ml.so.1");

}  // namespace loopfleet::worker
