#pragma once
// GpuMeter: measures a device's peak rates when its worker starts. Runs on the thread that owns the
// device.

#include <expected>

#include "common/job/failure.h"
#include "common/job/hardware_facts.h"
#include "worker/gpu/codegen/ptx_assembler.h"
#include "worker/gpu/device/gpu_device.h"

namespace loopfleet::worker {

// Measures float32 multiply-adds on all multiprocessors, and a copy within the device's memory,
// counted once as a read and once as a write (both bandwidth figures are this one). `assembler`
// null: the driver assembles, which not every installation can.
std::expected<DevicePeaks, Failure> MeasurePeaks(GpuDevice& device, PtxAssembler* assembler);

}  // namespace loopfleet::worker
