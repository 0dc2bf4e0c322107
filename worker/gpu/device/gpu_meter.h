#pragma once
// GpuMeter: what a device can do at most, measured when its worker starts.

#include <expected>

#include "common/job/failure.h"
#include "common/job/hardware_facts.h"
#include "worker/gpu/codegen/ptx_assembler.h"
#include "worker/gpu/device/gpu_device.h"

namespace loopfleet::worker {

// float32 multiply-adds of all multiprocessors together, and a copy from the device's memory to
// itself, counted once for reading and once for writing (both figures of bandwidth are that one).
// `assembler`: null: the driver assembles, which not every installation of it can.
std::expected<DevicePeaks, Failure> MeasurePeaks(GpuDevice& device, PtxAssembler* assembler);

}  // namespace loopfleet::worker
