#pragma once
// DeviceBench: a device with all that measuring on it takes: a compiler, an assembler, sensors.

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
  DeviceSensors* sensors = nullptr;   // null: there are none
  std::string missing;                // what the device is used without, and why; "": nothing
};

// For as long as `use` runs. What is wrong is a failure of the report.
void WithDevice(CudaDriver& driver, const Options& options, Report& report,
                const std::function<void(const DeviceBench&)>& use);

// Code that the device takes.
std::expected<std::string, Failure> CodeFor(const DeviceBench& bench, const GpuKernel& kernel);
// Skips what is not legal.
looptree::LoopTree Walked(const std::string& uri, const std::string& actions);

SamplingPolicy BenchPolicy(CacheState cache);
// Compiled, loaded anew, run once, and timed on random floats.
std::expected<DeviceSamples, Failure> MeasureTree(const DeviceBench& bench,
                                                  const looptree::LoopTree& tree,
                                                  const SamplingPolicy& policy);
// Why a goal cannot be judged by these: "" if it can.
std::string WhyNotJudged(const DeviceSamples& samples);

std::string StateText(const SensorReading& reading);

}  // namespace loopfleet::worker
