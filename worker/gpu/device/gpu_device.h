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
#include <span>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/job/failure.h"
#include "common/looptree/interpreter/interpret.h"
#include "worker/gpu/codegen/gpu_kernel.h"
#include "worker/gpu/device/cuda_driver.h"

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
  std::chrono::nanoseconds Now() const { return options_.clock(); }

  // Code (a cubin for this device, or PTX, which the driver assembles) with memory for its buffers.
  class Loaded {
   public:
    ~Loaded();
    Loaded(const Loaded&) = delete;
    Loaded& operator=(const Loaded&) = delete;
    std::uint64_t bytes() const;  // of one copy of the buffers
    const std::vector<CudaAddress>& buffers() const { return copies_.front(); }

   private:
    friend class GpuDevice;
    explicit Loaded(GpuDevice& device) : device_(device) {}
    GpuDevice& device_;
    CudaDriver::Module module_;
    std::vector<BufferSpec> specs_;
    std::vector<std::vector<CudaAddress>> copies_;  // of the buffers; the first is what Run uses
    std::vector<CudaDriver::Launch> launches_;      // without arguments
    CudaDriver::Batch batch_;                       // of batch_runs_ runs; null: none
    int batch_runs_ = 0;
  };
  // COMPILE_ERROR: the driver does not take the code; RUN_OOM: there is not so much memory.
  std::expected<std::unique_ptr<Loaded>, Failure> Load(const GpuKernel& kernel,
                                                       const std::string& code);

  using Inputs = std::span<const std::span<const float>>;
  using Outputs = std::span<const std::span<float>>;
  // Inputs in, outputs and scratch full of poison (worker/verification/verification.h), one run,
  // outputs out. RUN_TIMEOUT, RUN_CRASH.
  std::expected<void, Failure> Run(Loaded& kernel, Inputs inputs, Outputs outputs);
  std::expected<std::vector<looptree::Tensor>, Failure> Run(
      Loaded& kernel, const std::vector<looptree::Tensor>& inputs);

  // ---- timing, by the device's own clock, on what the buffers hold

  std::expected<void, Failure> SetInputs(Loaded& kernel, Inputs inputs);  // of every copy
  // What kernels are timed on: floats with all of their digits in use, as the power that a device
  // takes depends on them; from 0.5 to 1.5, where every operation is at home. The same each time.
  std::expected<void, Failure> SetRandomInputs(Loaded& kernel);
  // Runs go round among so many copies of the buffers from here on, so that what a run works on is
  // no longer in the cache; fewer if there is no memory for them. They hold what the buffers do.
  // How many there are now.
  std::expected<int, Failure> AddCopies(Loaded& kernel, int copies);
  // From here on runs are handed over so many at a time, a multiple of the copies. False: this
  // driver cannot.
  std::expected<bool, Failure> HandOverTogether(Loaded& kernel, int runs);
  // Called once, when everything is handed over and the device is at it.
  using Meanwhile = std::function<void()>;
  // `runs` in a row, a multiple of those that are handed over together: nanoseconds of all of them.
  std::expected<double, Failure> Time(Loaded& kernel, int runs, const Meanwhile& meanwhile = {});
  // So many bytes from one place of its memory to another, `times` over: nanoseconds of all of
  // them. RUN_OOM: there is not so much memory.
  std::expected<double, Failure> TimeCopies(std::uint64_t bytes, int times);
  // What `start` queues on the driver's stream, `times` over.
  std::expected<double, Failure> TimeQueued(const std::function<CudaCode()>& start, int times);
  // One run after the cache was filled with something else.
  std::expected<double, Failure> TimeCold(Loaded& kernel, const Meanwhile& meanwhile = {});

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
  std::expected<void, Failure> StartAll(const Loaded& kernel, std::size_t copy = 0);
  std::vector<CudaDriver::Launch> LaunchesOf(const Loaded& kernel, std::size_t copy) const;
  std::expected<std::vector<CudaAddress>, Failure> AllocateBuffers(const Loaded& kernel);
  std::expected<void, Failure> SetInput(Loaded& kernel, std::size_t input,
                                        std::span<const float> values);
  std::expected<double, Failure> ElapsedNs(const Meanwhile& meanwhile = {});
  // Until all that was started has ended, or the limit is reached: then the device is lost, as a
  // running kernel cannot be ended.
  std::expected<void, Failure> WaitFor(CudaDriver::Event event, std::chrono::nanoseconds limit);
  std::expected<void, Failure> CheckMemory();

  CudaDriver& driver_;
  Options options_;
  CudaDriver::Facts facts_;
  CudaDriver::Event begin_;
  CudaDriver::Event end_;
  CudaAddress evictor_ = 0;  // memory to fill the cache with; 0: not needed yet
  bool entered_ = false;
  bool lost_ = false;
};

}  // namespace loopfleet::worker
