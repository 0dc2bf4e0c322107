#pragma once
// GpuDevice: one GPU, as a process uses it that runs kernels: loads them, gives them memory full of
// NaN, runs and times them, and knows when the device, or this process' hold on it, is done for.
// One thread; one for each device and process.
//
// After an error that CUDA never forgets, or a kernel that does not end, the object is `lost`: each
// call fails at once with DEVICE_FAULT, and the process has to be replaced.

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/job/failure.h"
#include "common/looptree/interpret.h"
#include "worker/gpu/driver.h"
#include "worker/gpu/gpu_kernel.h"

namespace loopfleet::worker {

class GpuDevice {
 public:
  using Clock = std::function<std::chrono::nanoseconds()>;  // since any fixed moment
  struct Options {
    int ordinal = 0;
    std::chrono::milliseconds run_limit{10'000};  // of one run of a kernel
    Clock clock;                                  // none: the steady clock
  };
  // kNotFound: there is no such device; kUnavailable: it cannot be had.
  static Result<std::unique_ptr<GpuDevice>> Open(CudaDriver& driver, const Options& options);
  ~GpuDevice();
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  const CudaDriver::Facts& facts() const { return facts_; }
  bool lost() const { return lost_; }

  // Code (a cubin for this device, or PTX, which the driver assembles) with memory for its buffers.
  class Loaded {
   public:
    ~Loaded();
    Loaded(const Loaded&) = delete;
    Loaded& operator=(const Loaded&) = delete;

   private:
    friend class GpuDevice;
    explicit Loaded(GpuDevice& device) : device_(device) {}
    GpuDevice& device_;
    CudaDriver::Module module_;
    std::vector<BufferSpec> specs_;
    std::vector<CudaAddress> buffers_;
    std::vector<CudaDriver::Launch> launches_;
  };
  // COMPILE_ERROR: the driver does not take the code; RUN_OOM: there is not so much memory.
  std::expected<std::unique_ptr<Loaded>, Failure> Load(const GpuKernel& kernel,
                                                       const std::string& code);

  // Inputs in, outputs and scratch full of NaN, one run, outputs out. RUN_TIMEOUT, RUN_CRASH.
  std::expected<std::vector<looptree::Tensor>, Failure> Run(
      Loaded& kernel, const std::vector<looptree::Tensor>& inputs);
  // `runs` in a row on what the buffers hold, by the device's own clock: nanoseconds of all of
  // them.
  std::expected<double, Failure> Time(Loaded& kernel, int runs);

  // A known kernel with a known result, and memory that keeps what is written to it. To be run
  // before the next lease after anything went wrong. DEVICE_FAULT if either is not as it should be.
  std::expected<void, Failure> Check(const GpuKernel& canary, const std::string& code,
                                     const std::vector<looptree::Tensor>& inputs,
                                     const std::vector<looptree::Tensor>& outputs);

 private:
  GpuDevice(CudaDriver& driver, const Options& options) : driver_(driver), options_(options) {}
  // What `code` means for a job; and `lost_` from here on if it is sticky.
  Failure FailureOf(CudaCode code, std::string_view doing);
  std::expected<void, Failure> Succeeds(CudaCode code, std::string_view doing);
  std::expected<void, Failure> StartAll(const Loaded& kernel);
  // Until all that was started has ended, or the limit is reached: then the device is lost, as a
  // running kernel cannot be ended.
  std::expected<void, Failure> WaitFor(CudaDriver::Event event, std::chrono::nanoseconds limit);
  std::expected<void, Failure> CheckMemory();

  CudaDriver& driver_;
  Options options_;
  CudaDriver::Facts facts_;
  CudaDriver::Event begin_;
  CudaDriver::Event end_;
  bool entered_ = false;
  bool lost_ = false;
};

}  // namespace loopfleet::worker
