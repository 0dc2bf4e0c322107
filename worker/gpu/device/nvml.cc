// OpenNvml. Declares the few functions of nvml.h that it uses, so that the build needs no header.

#include "worker/gpu/device/nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "worker/gpu/codegen/shared_library.h"

namespace loopfleet::worker {
namespace {

constexpr int kSuccess = 0;
constexpr int kInsufficientSize = 7;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kCoreTemperature = 0;

struct ProcessInfo {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance;
  unsigned compute_instance;
};

using Device = struct nvmlDevice*;

struct Functions {
  int (*init)() = nullptr;
  int (*by_bus_id)(const char*, Device*) = nullptr;
  // Null if the library lacks them.
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*clock)(Device, int, unsigned*) = nullptr;
  int (*max_clock)(Device, int, unsigned*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*throttle_reasons)(Device, unsigned long long*) = nullptr;
  int (*processes)(Device, unsigned*, ProcessInfo*) = nullptr;
};

class Nvml final : public DeviceSensors {
 public:
  Nvml(const Functions& functions, Device device) : nv_(functions), device_(device) {}

  std::string DriverVersion() const override {
    std::array<char, 96> text{};
    if (nv_.driver_version == nullptr || nv_.driver_version(text.data(), text.size()) != kSuccess) {
      return "";
    }
    return text.data();
  }

  double MaxClockMhz() const override { return Asked(nv_.max_clock, kClockSm); }

  SensorReading Read() override {
    constexpr double kWattsPerMilliwatt = 1e-3;
    SensorReading reading;
    // Read first, because a running batch may end during the other reads.
    unsigned long long reasons = 0;
    if (nv_.throttle_reasons != nullptr && nv_.throttle_reasons(device_, &reasons) == kSuccess) {
      reading.throttle_reasons = reasons;
    }
    reading.clock_mhz = Asked(nv_.clock, kClockSm);
    reading.memory_clock_mhz = Asked(nv_.clock, kClockMemory);
    reading.temperature_c = Asked(nv_.temperature, kCoreTemperature);
    unsigned milliwatts = 0;
    if (nv_.power != nullptr && nv_.power(device_, &milliwatts) == kSuccess) {
      reading.power_w = milliwatts * kWattsPerMilliwatt;
    }
    return reading;
  }

  std::optional<int> Processes() override {
    if (nv_.processes == nullptr) return std::nullopt;
    std::array<ProcessInfo, 64> infos{};
    unsigned count = infos.size();
    const int result = nv_.processes(device_, &count, infos.data());
    if (result != kSuccess && result != kInsufficientSize) return std::nullopt;
    return static_cast<int>(count);
  }

 private:
  double Asked(int (*function)(Device, int, unsigned*), int what) const {
    unsigned value = 0;
    if (function == nullptr || function(device_, what, &value) != kSuccess) return 0;
    return value;
  }

  const Functions nv_;
  const Device device_;
};

}  // namespace

std::string ThrottleText(std::uint64_t reasons) {
  return fmt::format("{}", fmt::join(ThrottleReasons(reasons), ", "));
}

void Note(const SensorReading& reading, DeviceState& state) {
  state.temperature_c = std::max(state.temperature_c, reading.temperature_c);
  state.power_w = std::max(state.power_w, reading.power_w);
  state.memory_clock_mhz = reading.memory_clock_mhz;
  state.throttle_reasons |= reading.throttle_reasons;
}

Result<std::unique_ptr<DeviceSensors>> OpenNvml(const std::string& bus_id,
                                                const std::string& name) {
  const auto library = SharedLibrary::Open({&name, 1});
  if (!library) {
    return Fail(ErrorKind::kNotFound,
                fmt::format("there is no NVML ({})", library.error().message));
  }
  Functions nv;
  const auto find = [&](const char* symbol, auto& function) { library->Find(symbol, function); };
  find("nvmlInit_v2", nv.init);
  find("nvmlDeviceGetHandleByPciBusId_v2", nv.by_bus_id);
  find("nvmlSystemGetDriverVersion", nv.driver_version);
  find("nvmlDeviceGetClockInfo", nv.clock);
  find("nvmlDeviceGetMaxClockInfo", nv.max_clock);
  find("nvmlDeviceGetTemperature", nv.temperature);
  find("nvmlDeviceGetPowerUsage", nv.power);
  // Renamed in the drivers of CUDA 12.2, which still have the old name.
  find("nvmlDeviceGetCurrentClocksEventReasons", nv.throttle_reasons);
  if (nv.throttle_reasons == nullptr) {
    find("nvmlDeviceGetCurrentClocksThrottleReasons", nv.throttle_reasons);
  }
  find("nvmlDeviceGetComputeRunningProcesses_v3", nv.processes);
  if (nv.init == nullptr || nv.by_bus_id == nullptr) {
    return Fail(ErrorKind::kSystem, fmt::format("{} is no NVML, or too old a one", name));
  }
  if (const int result = nv.init(); result != kSuccess) {
    return Fail(ErrorKind::kUnavailable, fmt::format("NVML does not start (error {})", result));
  }
  Device device = nullptr;
  if (const int result = nv.by_bus_id(bus_id.c_str(), &device); result != kSuccess) {
    return Fail(ErrorKind::kUnavailable,
                fmt::format("NVML does not know the device {} (error {})", bus_id, result));
  }
  return std::make_unique<Nvml>(nv, device);
}

}  // namespace loopfleet::worker
