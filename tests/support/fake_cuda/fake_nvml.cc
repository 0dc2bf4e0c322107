// A fake libnvidia-ml.so.1. The file named by LOOPFLEET_FAKE_CUDA (control.h) sets its readings:
// throttle BITS, processes N, clock MHZ, temperature C, power MILLIWATTS.

#include "tests/support/fake_cuda/control.h"

// NOLINTBEGIN: the names are NVIDIA's
using loopfleet::fake_cuda::Control;

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  const std::string version = "0.fake";
  version.copy(text, size - 1);
  text[version.size()] = '\0';
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  *device = device;
  constexpr int kNotFound = 6;
  return std::string(id) == "00000000:FA:CE.0" ? 0 : kNotFound;
}
int nvmlDeviceGetClockInfo(void*, int, unsigned* mhz) {
  *mhz = static_cast<unsigned>(Control::Read().Get("clock", 1000));
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, int, unsigned* mhz) {
  *mhz = 2000;
  return 0;
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  *celsius = static_cast<unsigned>(Control::Read().Get("temperature", 40));
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = static_cast<unsigned>(Control::Read().Get("power", 100'000));
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = static_cast<unsigned long long>(Control::Read().Get("throttle", 0));
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
  *count = static_cast<unsigned>(Control::Read().Get("processes", 1));
  return 0;
}

}  // extern "C"
// NOLINTEND
