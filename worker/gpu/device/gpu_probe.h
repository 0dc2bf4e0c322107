#pragma once
// GpuProbe: what a GPU worker finds out before it has any child: whether there is a device, what it
// is and can do, who assembles for it, and that it computes a known kernel rightly. All in a
// process of its own that ends before anything else is forked: CUDA does not survive a fork, and
// the daemon keeps no context.

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
  DevicePeaks peaks;
  GpuAssembler assembler = GpuAssembler::kDriver;
  std::string assembler_name;  // "nvJitLink 13.0", "driver of CUDA 12.4"
  std::string why_driver;      // assembles: "" if it does not
  std::string driver_version;  // "580.65.06"; "": NVML does not say, like all below
  std::string no_sensors;      // why there are none; "": there are
  double max_clock_mhz = 0;
  SensorReading reading;
  std::string canary_code;  // that the device ran: to be loaded before each lease after trouble
};

// The calling process must have one thread. kNotFound: there is no driver or no such device, and
// what to do; kUnavailable: it cannot be used now; kTimeout.
Result<GpuProbe> ProbeGpu(int ordinal, std::chrono::milliseconds limit = std::chrono::seconds(120));

// What the environment of a process that opens the driver has to be: devices are counted as
// nvidia-smi counts them, and the driver keeps no files of its own.
void PrepareCudaEnvironment();

}  // namespace loopfleet::worker
