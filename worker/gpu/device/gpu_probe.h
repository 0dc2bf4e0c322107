#pragma once
// GpuProbe: what a GPU worker finds out before it starts any child: whether the device exists, its
// facts and peak rates, which assembler to use, and that it computes the canary correctly. Runs in
// a separate process that ends before anything else is forked, because CUDA does not survive a fork
// and the daemon must hold no context.

#include <chrono>
#include <string>

#include "common/base/result.h"
#include "common/job/hardware_facts.h"
#include "worker/gpu/codegen/gpu_backend.h"
#include "worker/gpu/device/cuda_driver.h"
#include "worker/gpu/device/nvml.h"

namespace loopfleet::worker {

struct GpuProbe {
  CudaDriver::Facts facts;
  DevicePeaks peaks;     // all 0: not known
  std::string no_peaks;  // why not; empty: they are known
  GpuAssembler assembler = GpuAssembler::kDriver;
  std::string assembler_name;   // "nvJitLink 13.0", "driver of CUDA 12.4"
  std::string assembler_place;  // of nvJitLink; empty: the driver assembles
  std::string why_driver;       // why the driver assembles; empty: nvJitLink does
  std::string driver_version;   // "580.65.06"; empty: no NVML
  std::string no_sensors;       // why sensors are missing; empty: they work
  double max_clock_mhz = 0;     // 0: no NVML
  SensorReading reading;        // all 0: no NVML
  std::string canary_code;      // the code that the device ran; later checks load it again
};

// The calling process must have one thread. kNotFound, with what to do: no driver or no such
// device. kUnavailable: the device cannot be used now. kTimeout: no answer within `limit`, or the
// process with the driver does not end: then it is left as it is.
Result<GpuProbe> ProbeGpu(int ordinal, std::chrono::milliseconds limit = std::chrono::seconds(120));

// Sets the environment for a process that opens the driver: devices are numbered as by nvidia-smi,
// and the driver keeps no cache files.
void PrepareCudaEnvironment();

}  // namespace loopfleet::worker
