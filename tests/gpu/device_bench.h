#pragma once
// DeviceBench: a device with everything needed to measure on it: a compiler, an assembler, sensors.
// Used by one thread.

#include <expected>
#include <functional>
#include <string>

#include "tests/gpu/options.h"
#include "tests/gpu/report.h"
#include "worker/gpu/codegen/gpu_compiler.h"
#include "worker/gpu/codegen/ptx_assembler.h"
#include "worker/gpu/device/cuda_driver.h"
#include "worker/gpu/device/device_sampler.h"
#include "worker/gpu/device/gpu_device.h"
#include "worker/gpu/device/nvml.h"

namespace loopfleet::worker {

struct DeviceBench {
  Report& report;
  CudaDriver& driver;
  GpuDevice& device;
  GpuArch arch;
  GpuCompiler& compiler;
  PtxAssembler* assembler = nullptr;  // null: the driver assembles
  DeviceSensors* sensors = nullptr;   // null: no sensors
  std::string missing;                // what is missing, and why; empty: nothing
};

// Opens a device for the duration of `use`. Errors become failures of the report.
void WithDevice(CudaDriver& driver, const Options& options, Report& report,
                const std::function<void(const DeviceBench&)>& use);

// The kernel's code in the form that the device accepts: a cubin, or PTX without an assembler.
std::expected<std::string, Failure> CodeFor(const DeviceBench& bench, const GpuKernel& kernel);
// The tree after the actions. Skips illegal actions.
looptree::LoopTree Walked(const std::string& uri, const std::string& actions);

SamplingPolicy BenchPolicy(CacheState cache);
// Compiles and loads the tree, runs it once, and times it on random floats.
std::expected<DeviceSamples, Failure> MeasureTree(const DeviceBench& bench,
                                                  const looptree::LoopTree& tree,
                                                  const SamplingPolicy& policy);
// Why a goal cannot be judged by these samples. Empty: it can.
std::string WhyNotJudged(const DeviceSamples& samples);

std::string StateText(const SensorReading& reading);

}  // namespace loopfleet::worker
